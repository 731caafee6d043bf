/** The output of a task: the end of both streams, and further output while it runs. */
import { createEffect, createMemo, createSignal, For, on, onMount, Show, type JSX } from 'solid-js'
import type { LogBody } from '../../../../controller/api/tasks/log-schema.ts'
import type { TaskBody } from '../../../../controller/api/tasks/schema.ts'
import { pathSegment } from '../../../api/client.ts'
import { save } from '../../../charts/save.ts'
import { Icon } from '../../../design/icon.tsx'
import { Problem } from '../../../design/problem.tsx'
import { bytesOf } from '../../../format/bytes.ts'
import { plural, whole } from '../../../format/figures.ts'
import { isOpen } from '../../../format/tasks.ts'
import { useCluster } from '../../../state/cluster.tsx'
import type { LogLine } from './log-lines.ts'
import { LogPane } from './log-pane.tsx'
import { LogReader, PIECE_BYTES, type LogStreamName } from './log-reader.ts'
import { matchesIn, MAX_MATCHES, type LogMatch } from './log-search.ts'
import styles from './logs.module.css'
import { errorText } from '../../../api/error-text.ts'

const STREAMS = ['stdout', 'stderr'] as const
type Shown = 'both' | LogStreamName
const SHOWN_NAMES: Readonly<Record<Shown, string>> = { both: 'Both', stdout: 'stdout', stderr: 'stderr' }

interface Found extends LogMatch {
  readonly stream: LogStreamName
}

export function Logs(props: { readonly task: TaskBody }): JSX.Element {
  const logs = createLogs(() => props.task)
  const [shown, setShown] = createSignal<Shown>('both')
  const [wanted, setWanted] = createSignal('')
  const [at, setAt] = createSignal<number | null>(null)
  const panes = createMemo(() => {
    const chosen = STREAMS.filter((stream) => shown() === 'both' || shown() === stream)
    const written = chosen.filter((stream) => logs.lines()[stream].length > 0)
    return written.length === 0 ? chosen.slice(0, 1) : written
  })
  const found = createMemo((): readonly Found[] =>
    panes().flatMap((stream) =>
      matchesIn(logs.lines()[stream], wanted()).map((match) => ({ ...match, stream })),
    ),
  )
  const current = (): Found | null => found()[at() ?? -1] ?? null
  let box!: HTMLDivElement
  onMount(() => box.style.setProperty('--log-top', `${box.getBoundingClientRect().top + scrollY}px`))
  return (
    <section class={styles['logs']} aria-label="Logs">
      <div class={styles['bar']}>
        <StreamChoice shown={shown()} onChoose={setShown} />
        <SearchBar
          wanted={wanted()}
          count={found().length}
          at={at()}
          onWanted={(text) => {
            setWanted(text)
            setAt(null)
          }}
          onGo={setAt}
        />
        <label>
          <input
            type="checkbox"
            checked={logs.isFollowing()}
            onChange={(event) => logs.setFollowing(event.currentTarget.checked)}
          />{' '}
          Follow
        </label>
        <span class="quiet" role="status">
          {logs.words()}
        </span>
      </div>
      <Problem text={logs.problem()} />
      <div class={styles['panes']} ref={box}>
        <For each={panes()}>
          {(stream) => (
            <div class={styles['stream']}>
              <PaneHead stream={stream} logs={logs} task={props.task} />
              <LogPane
                name={stream}
                lines={logs.lines()[stream]}
                wanted={wanted()}
                current={current()?.stream === stream ? current() : null}
              />
            </div>
          )}
        </For>
      </div>
    </section>
  )
}

type LogState = ReturnType<typeof createLogs>

function createLogs(task: () => TaskBody) {
  const { api, feed } = useCluster()
  const read = (query: {
    readonly stream: LogStreamName
    readonly offset: number
    readonly max_bytes: number
  }) => api.get<LogBody>(`/tasks/${pathSegment(task().id)}/logs`, query)
  const readers = { stdout: new LogReader('stdout', read), stderr: new LogReader('stderr', read) }
  const linesOf = () => ({ stdout: readers.stdout.lines, stderr: readers.stderr.lines })
  const [lines, setLines] = createSignal<Readonly<Record<LogStreamName, readonly LogLine[]>>>(linesOf())
  const [problem, setProblem] = createSignal<string | null>(null)
  const [isFollowing, setFollowing] = createSignal(true)
  const [isLoaded, setLoaded] = createSignal(false)
  const isEnded = (): boolean => STREAMS.every((stream) => readers[stream].isEnded)
  let isBusy = false
  const attempt = async (what: () => Promise<boolean>): Promise<void> => {
    if (isBusy) return
    isBusy = true
    try {
      if (await what()) setLines(linesOf())
      setProblem(null)
      setLoaded(true)
    } catch (error) {
      setProblem(errorText(error))
    } finally {
      isBusy = false
    }
  }
  const readOn = (): Promise<void> =>
    attempt(async () => {
      const changes = [await readers.stdout.readOn(), await readers.stderr.readOn()]
      return changes.includes(true)
    })
  void readOn()
  // The shared connection brings a message each second: no second stream is needed.
  createEffect(
    on(
      feed.heardAt,
      () => {
        if (isFollowing() && !isEnded() && document.visibilityState === 'visible') void readOn()
      },
      { defer: true },
    ),
  )
  const words = (): string => {
    lines()
    if (!isLoaded()) return problem() === null ? 'Loading…' : ''
    if (isEnded()) return 'The output is complete.'
    if (!isFollowing()) return 'Paused: new output is not loaded.'
    return isOpen(task()) ? 'Following.' : 'Loading the rest…'
  }
  return {
    lines,
    problem,
    isFollowing,
    setFollowing,
    words,
    read,
    reader: (stream: LogStreamName) => readers[stream],
    readEarlier: (stream: LogStreamName) => attempt(() => readers[stream].readEarlier()),
  }
}

function StreamChoice(props: {
  readonly shown: Shown
  readonly onChoose: (shown: Shown) => void
}): JSX.Element {
  return (
    <div class="row" role="radiogroup" aria-label="Streams">
      <For each={['both', ...STREAMS] as const}>
        {(each) => (
          <label>
            <input
              type="radio"
              name="log-stream"
              checked={props.shown === each}
              onChange={() => props.onChoose(each)}
            />{' '}
            {SHOWN_NAMES[each]}
          </label>
        )}
      </For>
    </div>
  )
}

interface SearchBarProps {
  readonly wanted: string
  readonly count: number
  /** Index of the match that is shown. */
  readonly at: number | null
  readonly onWanted: (text: string) => void
  readonly onGo: (at: number) => void
}

function SearchBar(props: SearchBarProps): JSX.Element {
  const go = (step: 1 | -1): void => {
    if (props.count === 0) return
    // The latest output is the most interesting: the first step goes to the last match.
    const to = props.at === null ? props.count - 1 : props.at + step
    props.onGo((to + props.count) % props.count)
  }
  const words = (): string => {
    if (props.wanted === '') return ''
    if (props.count === 0) return 'no match'
    const count = `${whole(props.count)}${props.count >= MAX_MATCHES ? ' or more' : ''}`
    return props.at === null ? `${count} found` : `${whole(props.at + 1)} of ${count}`
  }
  return (
    <form
      class={styles['search']}
      role="search"
      aria-label="Output"
      onSubmit={(event) => {
        event.preventDefault()
        go(-1)
      }}
    >
      <Icon of="search" />
      <input
        type="search"
        aria-label="Search the loaded output"
        placeholder="Search the loaded output"
        maxLength="200"
        value={props.wanted}
        onInput={(event) => props.onWanted(event.currentTarget.value)}
      />
      <output>{words()}</output>
      <button type="submit">Previous</button>
      <button type="button" onClick={() => go(1)}>
        Next
      </button>
    </form>
  )
}

interface PaneHeadProps {
  readonly stream: LogStreamName
  readonly logs: LogState
  readonly task: TaskBody
}

function PaneHead(props: PaneHeadProps): JSX.Element {
  const [saving, setSaving] = createSignal<string | null>(null)
  /** The reader itself is not a signal: its lines are. */
  const reader = () => {
    props.logs.lines()
    return props.logs.reader(props.stream)
  }
  const download = async (): Promise<void> => {
    setSaving('Reading…')
    try {
      const parts = await allOf(props.logs.read, props.stream)
      save(`${props.task.name}.${props.stream}.log`, new Blob(parts, { type: 'text/plain' }))
      setSaving(null)
    } catch (error) {
      setSaving(errorText(error))
    }
  }
  return (
    <div class={styles['head']}>
      <h2>{props.stream}</h2>
      <span class="quiet">
        {reader().lines.length === 0 ? 'nothing written yet' : plural(reader().lines.length, 'line', 'lines')}
        {reader().missedBytes === 0
          ? ''
          : `; ${whole(reader().missedBytes)} bytes in between are no longer retained`}
      </span>
      <Show when={reader().start > 0}>
        <button onClick={() => void props.logs.readEarlier(props.stream)}>Load earlier output</button>
      </Show>
      <Show when={reader().lines.length > 0}>
        <button onClick={() => void download()}>Download {props.stream}</button>
      </Show>
      <Show when={saving()}>{(words) => <span role="status">{words()}</span>}</Show>
    </div>
  )
}

/** All output that the GPU server retains; a size at which the page still has memory. */
const MAX_DOWNLOAD_BYTES = 256 * 1_048_576

async function allOf(read: LogState['read'], stream: LogStreamName): Promise<Uint8Array<ArrayBuffer>[]> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  let size = 0
  for (let offset = 0; ;) {
    const piece = await read({ stream, offset, max_bytes: PIECE_BYTES })
    if (piece.data === '') return parts
    const bytes = bytesOf(piece.data)
    parts.push(bytes)
    size += bytes.length
    offset = piece.next_offset
    if (size > MAX_DOWNLOAD_BYTES)
      throw new Error('The output is too large for the browser. Use headroom task logs.')
  }
}
