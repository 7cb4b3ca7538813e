/**
 * Text that somebody sent: laid out where it is JSON, as it came, and the headers that came with it. Of a long one
 * only the beginning is shown; all of it can be saved.
 */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { bytes } from '../../format.ts';
import { layOut } from '../../json-text.ts';
import { Scroll } from '../../ui/scroll.tsx';

export type HeaderLines = readonly (readonly [name: string, value: string])[];

export interface TextViewProps {
  /** What the text is, for those who hear it. */
  readonly label: string;
  readonly text: string;
  readonly headers?: HeaderLines | undefined;
  /** Headers that are not shown, and why. */
  readonly withheld?: HeaderLines;
  /** It stands for bytes that are no text. */
  readonly encoded?: boolean;
  /** What to say where there is none. */
  readonly empty: string;
  /** By which it can be saved. */
  readonly fileName?: string;
}

type Form = 'Pretty' | 'Raw' | 'Headers';

const MOST_SHOWN = 200_000;
/** More elements than this make a page slow, and nobody looks at all their colours. */
const MOST_COLOURED = 4_000;
/** A browser may take a moment to begin with what it saves. */
const KEPT_MS = 60_000;

export function TextView(props: TextViewProps) {
  const { label, text, headers, withheld = [], encoded = false, empty, fileName } = props;
  const shown = text.length > MOST_SHOWN ? text.slice(0, MOST_SHOWN) : text;
  const pretty = useMemo(() => (encoded || text === '' ? undefined : coloured(shown)), [shown, encoded]);
  const forms: Form[] = [
    ...(pretty === undefined ? [] : (['Pretty'] as const)),
    'Raw',
    ...(headers === undefined ? [] : (['Headers'] as const)),
  ];
  const chosen = useSignal<Form>('Pretty');
  const form = forms.includes(chosen.value) ? chosen.value : forms[0]!;
  return (
    <div class="text-view">
      <div class="spread">
        <fieldset class="choices" aria-label={`${label}, shown as`}>
          {forms.map(each => (
            <button
              key={each}
              type="button"
              aria-pressed={each === form}
              onClick={() => {
                chosen.value = each;
              }}
            >
              {each}
            </button>
          ))}
        </fieldset>
        {fileName !== undefined && text !== '' && (
          <button type="button" onClick={() => save(text, fileName)}>
            Download
          </button>
        )}
      </div>
      {encoded && form === 'Raw' && <p class="faint">Bytes that are no text, shown in base64.</p>}
      {form === 'Headers' && (
        <Headers lines={headers ?? []} withheld={withheld} label={`${label}, headers`} />
      )}
      {form !== 'Headers' && text === '' && <p class="faint">{empty}</p>}
      {form !== 'Headers' && text !== '' && (
        <Scroll label={label} class="content">
          <pre>{form === 'Pretty' ? pretty : shown}</pre>
        </Scroll>
      )}
      {shown !== text && form !== 'Headers' && (
        <p class="faint">The beginning of {bytes(new Blob([text]).size)}. Download it to see all.</p>
      )}
    </div>
  );
}

function coloured(text: string): ComponentChildren {
  return layOut(text, MOST_COLOURED)?.map(({ kind, text }, index) =>
    kind === 'plain' ? (
      text
    ) : (
      <span key={index} class={kind}>
        {text}
      </span>
    ),
  );
}

function Headers({
  lines,
  withheld,
  label,
}: {
  readonly lines: HeaderLines;
  readonly withheld: HeaderLines;
  readonly label: string;
}) {
  return (
    <table class="headers" aria-label={label}>
      <tbody>
        {lines.map(([name, value], index) => (
          <tr key={index}>
            <th scope="row">{name}</th>
            <td>{value}</td>
          </tr>
        ))}
        {withheld.map(([name, why]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="faint">{why}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A link outside of the page, so that nothing takes the click for a way within it. */
function save(text: string, fileName: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  link.download = fileName;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}
