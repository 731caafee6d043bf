/**
 * Uploads a file, or the recent history of this cluster, as a trace. The controller checks all of it and
 * counts the rows that it drops.
 */
import { createSignal, For, type JSX } from 'solid-js'
import type { EventPage } from '../../../controller/api/observe/event-schema.ts'
import type { TraceBody } from '../../../controller/api/simulations/trace-schema.ts'
import { ActionButton } from '../../design/action-button.tsx'
import { Problem } from '../../design/problem.tsx'
import { whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { TextField } from './field.tsx'
import { traceName } from './traced-scenario.ts'
import styles from './planner.module.css'

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
const ACTIVITIES = ['', 'always-busy', 'serving', 'training']
const HOURS = [1, 6, 24, 168]
/** The events that the importer of Headroom's own events reads. */
const KINDS = 'task_submitted,task_started,task_returned,task_finished,task_residency,swap_in_decided'
const PAGE = 200
const MAX_EVENTS = 100_000

export function SendTrace(props: { readonly onSent: (name: string) => void }): JSX.Element {
  const { api, session } = useCluster()
  const [file, setFile] = createSignal<File | null>(null)
  const [name, setName] = createSignal('')
  const [format, setFormat] = createSignal('')
  const [activity, setActivity] = createSignal('')
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
      setProblem(error instanceof Error ? error.message : String(error))
    } finally {
      setState(null)
    }
  }
  const sendFile = (): void => {
    const chosenFile = file()
    if (chosenFile === null) return void setProblem('Choose a file.')
    void send({ name: name(), format: format(), activity: activity() }, () => Promise.resolve(chosenFile))
  }
  const takeEvents = (): void => {
    const since = new Date(Date.now() - hours() * 3_600_000).toISOString()
    void send({ name: `here-${hours()}h`, format: 'headroom', activity: '' }, () => eventsSince(since))
  }
  const eventsSince = async (since: string): Promise<Blob> => {
    const lines: string[] = []
    let after = 0
    for (let read = 0; ;) {
      const page = await api.get<EventPage>('/events', { after, since, kind: KINDS, limit: PAGE })
      if (page.items.length > 0) lines.push(JSON.stringify(page))
      read += page.items.length
      setState(`${whole(read)} events read…`)
      if (page.items.length < PAGE) break
      if (read >= MAX_EVENTS)
        throw new Error(
          `More than ${whole(MAX_EVENTS)} events. Choose a shorter time, or use headroom sim record.`,
        )
      after = page.items.at(-1)?.seq ?? after
    }
    if (lines.length === 0) throw new Error('No task was submitted, ran or ended here in that time.')
    return new Blob([`${lines.join('\n')}\n`])
  }
  return (
    <details>
      <summary>Upload a trace, or use the history of this cluster</summary>
      <div class={styles['form']}>
        <h3>File</h3>
        <div class={styles['fields']}>
          <label class={styles['field']}>
            File
            <input
              type="file"
              onChange={(event) => {
                const [first = null] = event.currentTarget.files ?? []
                setFile(first)
                if (first !== null) setName(traceName(first.name))
              }}
            />
          </label>
          <TextField
            name="Trace name"
            value={name()}
            onInput={setName}
            help="Small letters, digits, dashes. Replaces a trace of the same name."
          />
          <label class={styles['field']}>
            Format
            <select aria-label="Format" onChange={(event) => setFormat(event.currentTarget.value)}>
              <For each={FORMATS}>
                {(each) => <option value={each}>{each === '' ? 'Headroom trace' : each}</option>}
              </For>
            </select>
          </label>
          <label class={styles['field']}>
            GPU activity of tasks, if the file has none
            <select onChange={(event) => setActivity(event.currentTarget.value)}>
              <For each={ACTIVITIES}>
                {(each) => <option value={each}>{each === '' ? 'default of the format' : each}</option>}
              </For>
            </select>
          </label>
        </div>
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
          Tasks that were submitted in that time, according to their events. Tasks that have not ended are
          left out.
        </p>
        <p role="status">{state() ?? ''}</p>
        <Problem text={problem()} />
      </div>
    </details>
  )
}
