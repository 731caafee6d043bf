/** The output of a task, on request: it is read from the GPU server that ran the task. */
import { createSignal, For, Show, type JSX } from 'solid-js'
import type { LogBody } from '../../../controller/api/tasks/log-schema.ts'
import type { TaskBody } from '../../../controller/api/tasks/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { ActionButton } from '../../design/action-button.tsx'
import { Problem } from '../../design/problem.tsx'
import { whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { whyNotOwn } from './task-rights.ts'

const STREAMS = ['stdout', 'stderr'] as const
/** Longer output loses its beginning. */
const MAX_CHARACTERS = 262_144

export function Output(props: { readonly task: TaskBody }): JSX.Element {
  const { api, session } = useCluster()
  const [stream, setStream] = createSignal<(typeof STREAMS)[number]>('stdout')
  const [text, setText] = createSignal<string | null>(null)
  const [problem, setProblem] = createSignal<string | null>(null)
  const [isEnded, setEnded] = createSignal(false)
  let offset = 0
  let decoder = new TextDecoder()
  const choose = (next: (typeof STREAMS)[number]): void => {
    setStream(next)
    setText(null)
    setEnded(false)
    offset = 0
    decoder = new TextDecoder()
  }
  const loadMore = async (): Promise<void> => {
    setProblem(null)
    try {
      const log = await api.get<LogBody>(`/tasks/${pathSegment(props.task.id)}/logs`, {
        stream: stream(),
        offset,
      })
      const gap =
        log.data !== '' && log.offset > offset
          ? `[${whole(log.offset - offset)} bytes are no longer retained]\n`
          : ''
      offset = log.next_offset
      setText(
        ((text() ?? '') + gap + decoder.decode(bytesOf(log.data), { stream: true })).slice(-MAX_CHARACTERS),
      )
      setEnded(log.is_ended && log.data === '')
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error))
    }
  }
  return (
    <section class="card" aria-labelledby="output">
      <h2 id="output">Output</h2>
      <p class="row">
        <label>
          Stream{' '}
          <select
            value={stream()}
            onChange={(event) => choose(event.currentTarget.value as (typeof STREAMS)[number])}
          >
            <For each={STREAMS}>{(each) => <option value={each}>{each}</option>}</For>
          </select>
        </label>
        <ActionButton whyNot={whyNotOwn(session, props.task)} onClick={() => void loadMore()}>
          {text() === null ? 'Load output' : 'Load more'}
        </ActionButton>
      </p>
      <Problem text={problem()} />
      <Show when={text() !== null}>
        <pre tabindex="0" class="text" aria-label={`${stream()} of the task`}>
          {text() === '' ? 'No output yet.' : text()}
        </pre>
      </Show>
      <Show when={isEnded()}>
        <p class="quiet">The output is complete.</p>
      </Show>
    </section>
  )
}

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
}
