/**
 * Asks for the admin token.
 */
import { useSignal } from '@preact/signals';
import { logIn } from '../session.ts';

export function Login() {
  const token = useSignal('');
  const trouble = useSignal<string | undefined>(undefined);
  const asking = useSignal(false);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    asking.value = true;
    try {
      trouble.value = await logIn(token.value);
    } catch {
      trouble.value = 'The service does not answer.';
    }
    asking.value = false;
  }

  return (
    <main class="alone">
      <img src="/favicon.svg" alt="" width="48" height="48" />
      <h1>Afterword</h1>
      <form class="stack" onSubmit={event => void submit(event)}>
        <label>
          Admin token
          <input
            type="password"
            name="token"
            autocomplete="current-password"
            required
            autofocus
            aria-describedby="login-trouble"
            value={token.value}
            onInput={event => {
              token.value = event.currentTarget.value;
            }}
          />
        </label>
        <p id="login-trouble" class="problem" role="alert">
          {trouble.value}
        </p>
        <button type="submit" class="primary" disabled={asking.value}>
          Log in
        </button>
        <p class="faint">
          It is <code>adminToken</code> in the configuration of the service.
        </p>
      </form>
    </main>
  );
}
