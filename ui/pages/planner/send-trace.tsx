/**
 * Uploads a file, or the recent history of this cluster, as a trace. The controller checks all of it and
 * counts the rows that it drops.
 */
import { createSignal, For, Show, type JSX } from 'solid-js'
import type { TraceBody } from '../../../controller/api/simulations/trace-schema.ts'
import { ActionButton } from '../../design/action-button.tsx'
import { Problem } from '../../design/problem.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { ColumnMapping } from './column-mapping.tsx'
import { cellsOf, guessedMapping, mappedHeader, missingOf, type Mapping } from './csv-columns.ts'
import { recordHistory } from './record-history.ts'
import { TextField } from './field.tsx'
import { traceName } from './traced-scenario.ts'
import styles from './planner.module.css'
import { errorText } from '../../api/error-text.ts'

/** docs/trace-format.md; the first one is Headroom's own trace format. */
const FORMATS = [
  '',
  'headroom',
  'csv',
  'slurm',
  'openb',
  'philly',
  'helios',
  'swf',
  'tiresias',
  'gavel',
  'azure-llm',
  'nvidia-smi',
  'dcgm',
]
const FORMAT_OF_ENDING: Readonly<Record<string, string>> = { csv: 'csv', swf: 'swf' }

interface Head {
  readonly columns: readonly string[]
  /** Length of the first line, without its line break. */
  readonly headBytes: number
}

const ACTIVITIES = ['', 'always-busy', 'serving', 'training']
const HOURS = [1, 6, 24, 168]
/** The first lines of a file: the header of a CSV file is in them. */
const HEAD_BYTES = 65_536

export function SendTrace(props: { readonly onSent: (name: string) => void }): JSX.Element {
  const { api, session } = useCluster()
  const [file, setFile] = createSignal<File | null>(null)
  const [name, setName] = createSignal('')
  const [format, setFormat] = createSignal('')
  const [activity, setActivity] = createSignal('')
  const [columns, setColumns] = createSignal<Head | null>(null)
  const [mapping, setMapping] = createSignal<Mapping>({})
  const [hours, setHours] = createSignal(1)
  const [state, setState] = createSignal<string | null>(null)
  const [problem, setProblem] = createSignal<string | null>(null)
  const whyNot = (): string | null =>
    session.whyNot('submitter') ?? (state() === null ? null : 'An upload is in progress.')

  const send = async (
    what: { readonly name: string; readonly format: string; readonly activity: string },
    body: () => Promise<Blob>,
  ) => {
    setProblem(null)
    setState('Reading…')
    try {
      const blob = await body()
      setState('Uploading and checking…')
      const query = { name: what.name, format: what.format, activity_model: what.activity }
      const answer = await api.send<TraceBody>('POST', '/traces', {
        query,
        body: blob,
        contentType: 'application/octet-stream',
      })
      props.onSent(answer.body.name)
    } catch (error) {
      setProblem(errorText(error))
    } finally {
      setState(null)
    }
  }
  const sendFile = (): void => {
    const chosenFile = file()
    if (chosenFile === null) return void setProblem('Choose a file.')
    const read = columns()
    const isMapped = format() === 'csv' && read !== null
    if (isMapped && missingOf(mapping()) !== null) return void setProblem(missingOf(mapping()))
    const body = isMapped
      ? new Blob([mappedHeader(read.columns, mapping()), chosenFile.slice(read.headBytes)])
      : chosenFile
    void send({ name: name(), format: format(), activity: activity() }, () => Promise.resolve(body))
  }
  const takeEvents = (): void => {
    const past = hours()
    void send({ name: `here-${past}h`, format: 'headroom', activity: '' }, () =>
      recordHistory(api, past, setState),
    )
  }
  const choose = async (first: File | null): Promise<void> => {
    setFile(first)
    setColumns(null)
    if (first === null) return
    setName(traceName(first.name))
    const guessed = FORMAT_OF_ENDING[first.name.toLowerCase().replace(/^.*\./, '')]
    if (guessed !== undefined) setFormat(guessed)
    if (guessed === 'csv') {
      const head = (await first.slice(0, HEAD_BYTES).text()).split('\n')[0] ?? ''
      const columns = cellsOf(head.replace(/\r$/, ''))
      setColumns({ columns, headBytes: new TextEncoder().encode(head).length })
      setMapping(guessedMapping(columns))
    }
  }
  return (
    <details>
      <summary>Upload a trace, or use the history of this cluster</summary>
      <div class={styles['form']}>
        <h3>File</h3>
        <div class={styles['fields']}>
          <label class={styles['field']}>
            File
            <input type="file" onChange={(event) => void choose(event.currentTarget.files?.[0] ?? null)} />
          </label>
          <TextField
            name="Trace name"
            value={name()}
            onInput={setName}
            help="Lowercase letters, digits and dashes. An existing trace with the same name is replaced."
          />
          <label class={styles['field']}>
            Format
            <select aria-label="Format" onChange={(event) => setFormat(event.currentTarget.value)}>
              <For each={FORMATS}>
                {(each) => (
                  <option value={each} selected={each === format()}>
                    {each === '' ? 'Headroom trace' : each}
                  </option>
                )}
              </For>
            </select>
          </label>
          <label class={styles['field']}>
            GPU activity, if the file does not specify it
            <select onChange={(event) => setActivity(event.currentTarget.value)}>
              <For each={ACTIVITIES}>
                {(each) => <option value={each}>{each === '' ? 'default of the format' : each}</option>}
              </For>
            </select>
          </label>
        </div>
        <Show when={format() === 'csv' && columns()}>
          {(read) => <ColumnMapping columns={read().columns} mapping={mapping()} onMap={setMapping} />}
        </Show>
        <p>
          <ActionButton whyNot={whyNot()} onClick={sendFile}>
            Upload file
          </ActionButton>
        </p>
        <h3>History of this cluster</h3>
        <div class="row">
          <label>
            Last{' '}
            <select onChange={(event) => setHours(Number(event.currentTarget.value))}>
              <For each={HOURS}>
                {(each) => <option value={each}>{each === 1 ? 'hour' : `${each} hours`}</option>}
              </For>
            </select>
          </label>
          <ActionButton whyNot={whyNot()} onClick={takeEvents}>
            Use as trace
          </ActionButton>
        </div>
        <p class="quiet">
          The trace contains the tasks that were submitted in that period, according to the events. Tasks that
          have not ended are omitted.
        </p>
        <p role="status">{state() ?? ''}</p>
        <Problem text={problem()} />
      </div>
    </details>
  )
}
