import { useId } from "preact/hooks";

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly of: readonly string[];
  readonly onChange: (value: string) => void;
}

/** One of a list that is short enough to be looked through. */
export function Choice({ label, value, of, onChange }: ChoiceProps) {
  const id = useId();
  return (
    <span class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {of.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </span>
  );
}

/** Proposals that are offered at a time: more is no choice, and slow to draw. */
const mostOffered = 50;

interface PickerProps extends ChoiceProps {
  readonly hint?: string;
}

/** One of many, found by typing a part of it. */
export function Picker({ label, value, of, onChange, hint }: PickerProps) {
  const id = useId();
  const wanted = value.toLowerCase();
  const offered = of.filter((each) => each.toLowerCase().includes(wanted)).slice(0, mostOffered);
  return (
    <span class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        list={`${id}-of`}
        value={value}
        placeholder={hint}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      <datalist id={`${id}-of`}>
        {offered.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </span>
  );
}
