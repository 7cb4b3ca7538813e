/**
 * Whether the list follows what happens, and whether it can.
 */
import { go, withParameters } from '../../location.ts';
import type { Connection } from './list.ts';

const WORDS: Readonly<Record<Connection, string>> = {
  off: '',
  connecting: 'connecting…',
  live: 'connected',
  reconnecting: 'reconnecting…',
};

export interface LiveSwitchProps {
  readonly isOn: boolean;
  readonly connection: Connection;
  readonly onRead: () => void;
}

export function LiveSwitch({ isOn, connection, onRead }: LiveSwitchProps) {
  return (
    <div class="row">
      {isOn ? (
        <output class={`connection ${connection}`}>{WORDS[connection]}</output>
      ) : (
        <button type="button" onClick={onRead}>
          Read again
        </button>
      )}
      <label class="inline">
        <input
          type="checkbox"
          checked={isOn}
          onChange={event => go(withParameters({ live: event.currentTarget.checked ? undefined : 'off' }))}
        />
        Live
      </label>
    </div>
  );
}
