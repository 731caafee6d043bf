/** The common fields of a scenario. The form names the parts that only the text can edit. */
import { createMemo, createSignal, createUniqueId, For, Index, Show, type JSX } from 'solid-js'
import {
  FIRST_SCENARIO,
  FLEET_FIELDS,
  GENERAL_FIELDS,
  NEW_ENTRIES,
  WORKLOAD_FIELDS,
  type FormField,
  type WorkloadKind,
} from './form-fields.ts'
import {
  isJson,
  lengthAt,
  MAX_FORM_CHARACTERS,
  readScenarioText,
  valueAt,
  withEntry,
  withoutEntry,
  withValue,
  type Path,
  type ScenarioText,
} from './scenario-text.ts'
import { withoutValue } from './without-value.ts'
import styles from './scenario.module.css'

export interface ScenarioFormProps {
  readonly text: string
  readonly onText: (text: string) => void
}

interface PartProps {
  readonly scenario: ScenarioText
  readonly onText: (text: string) => void
}

export function ScenarioForm(props: ScenarioFormProps): JSX.Element {
  const scenario = createMemo(() => readScenarioText(props.text))
  return (
    <section class={styles['form']} aria-label="Scenario as a form">
      <Show
        when={scenario()}
        fallback={
          <Show
            when={props.text.trim() === ''}
            fallback={
              <p class="quiet">
                {props.text.length > MAX_FORM_CHARACTERS
                  ? 'The scenario is too long for the form. Edit it as text.'
                  : 'The form is shown again when the text is valid YAML.'}
              </p>
            }
          >
            <p>
              <button type="button" onClick={() => props.onText(FIRST_SCENARIO)}>
                Start with an example
              </button>
            </p>
          </Show>
        }
      >
        {(read) => (
          <>
            <Fields fields={GENERAL_FIELDS} at={[]} scenario={read()} onText={props.onText} />
            <Entries
              name="Fleet"
              entryName="nodes"
              path={['fleet']}
              fieldsAt={() => FLEET_FIELDS}
              kinds={['nodes']}
              scenario={read()}
              onText={props.onText}
            />
            <Entries
              name="Workload"
              entryName="workload"
              path={['workload']}
              fieldsAt={(path) => fieldsOfWorkload(read(), path)}
              kinds={['arrivals', 'task']}
              scenario={read()}
              onText={props.onText}
            />
            <p class="quiet">
              Edit all other keys (operator, faults, assertions and more) in the text. The form does not
              change them.
            </p>
          </>
        )}
      </Show>
    </section>
  )
}

function fieldsOfWorkload(scenario: ScenarioText, path: Path): readonly FormField[] {
  const kind = (['generate', 'trace', 'task'] as const satisfies readonly WorkloadKind[]).find(
    (each) => valueAt(scenario, [...path, each]) !== undefined,
  )
  return kind === undefined ? [] : WORKLOAD_FIELDS[kind]
}

interface EntriesProps extends PartProps {
  readonly name: string
  /** Name of an entry. */
  readonly entryName: string
  readonly path: Path
  readonly fieldsAt: (path: Path) => readonly FormField[]
  /** Kinds of entries that can be added. */
  readonly kinds: readonly (keyof typeof NEW_ENTRIES)[]
}

function Entries(props: EntriesProps): JSX.Element {
  const count = (): number => lengthAt(props.scenario, props.path)
  const change = (text: string | null): void => {
    if (text !== null) props.onText(text)
  }
  return (
    <fieldset class={styles['list']}>
      <legend>{props.name}</legend>
      <Index each={Array.from({ length: count() }, (_, at) => at)}>
        {(at) => (
          <div class={styles['entry']} role="group" aria-label={`${props.name}, entry ${at() + 1}`}>
            <Fields
              fields={props.fieldsAt([...props.path, at()])}
              at={[...props.path, at()]}
              scenario={props.scenario}
              onText={props.onText}
            />
            <Show when={withoutEntry(props.scenario, props.path, at()) !== null}>
              <button
                type="button"
                aria-label={`Remove ${props.entryName} ${at() + 1}`}
                onClick={() => change(withoutEntry(props.scenario, props.path, at()))}
              >
                Remove
              </button>
            </Show>
          </div>
        )}
      </Index>
      <div class="row">
        <For each={props.kinds}>
          {(kind) => (
            <button
              type="button"
              onClick={() =>
                change(withEntry(props.scenario, props.path, NEW_ENTRIES[kind](isJson(props.scenario))))
              }
            >
              Add {kind}
            </button>
          )}
        </For>
      </div>
    </fieldset>
  )
}

interface FieldsProps extends PartProps {
  readonly fields: readonly FormField[]
  readonly at: Path
}

function Fields(props: FieldsProps): JSX.Element {
  return (
    <Show
      when={props.fields.length > 0}
      fallback={<p class="quiet">Entries of this kind can be edited only in the text.</p>}
    >
      <div class={styles['fields']}>
        <For each={props.fields}>
          {(field) => <Field field={field} at={props.at} scenario={props.scenario} onText={props.onText} />}
        </For>
      </div>
    </Show>
  )
}

interface FieldProps extends PartProps {
  readonly field: FormField
  readonly at: Path
}

function Field(props: FieldProps): JSX.Element {
  const id = createUniqueId()
  const [isEmptied, setEmptied] = createSignal(false)
  const places = () =>
    props.field.paths.map((path) => {
      const full = [...props.at, ...path]
      return { path: full, value: valueAt(props.scenario, full) }
    })
  const place = () => places().find(({ value }) => typeof value === 'string')
  /** The text has something other than a single value there. */
  const isElsewhere = (): boolean => place() === undefined && places().some(({ value }) => value === null)
  const type = (value: string): void => {
    const trimmed = value.trim()
    setEmptied(trimmed === '')
    const path = place()?.path ?? places()[0]?.path
    const text = trimmed === '' || path === undefined ? null : withValue(props.scenario, path, trimmed)
    if (text !== null) props.onText(text)
  }
  /** The field was left empty. */
  const leave = (): void => {
    const path = place()?.path
    const text =
      isEmptied() && props.field.isOptional && path !== undefined ? withoutValue(props.scenario, path) : null
    setEmptied(false)
    if (text !== null) props.onText(text)
  }
  const help = (): string => {
    if (!isEmptied() || place() === undefined) return props.field.help
    if (props.field.isOptional)
      return `Leave the field empty to remove it from the text. ${props.field.help}.`
    return `This field is required: the value stays ${place()?.value}.`
  }
  return (
    <div class={styles['field']}>
      <label for={id}>{props.field.name}</label>
      <input
        id={id}
        autocomplete="off"
        spellcheck={false}
        disabled={isElsewhere()}
        placeholder={isElsewhere() ? 'in the text' : ''}
        value={isEmptied() ? '' : (place()?.value ?? '')}
        aria-describedby={`${id}-help`}
        onInput={(event) => type(event.currentTarget.value)}
        onChange={leave}
        onBlur={leave}
      />
      <p id={`${id}-help`} class="quiet">
        {help()}
      </p>
    </div>
  )
}
