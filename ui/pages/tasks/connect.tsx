/** Commands that lead into a running task. A browser has no terminal and no port of its own for it. */
import { For, Show, type JSX } from 'solid-js'
import type { TaskBody } from '../../../controller/api/tasks/schema.ts'
import { CopyButton } from '../../design/copy-button.tsx'

interface Way {
  readonly name: string
  readonly command: string
}

/** A port that no task declares, as an example. */
const EXAMPLE_PORT = 8888

export function Connect(props: { readonly task: TaskBody }): JSX.Element {
  return (
    <section class="card stack" aria-label="Connect">
      <h2>Connect from a terminal</h2>
      <Show
        when={props.task.state === 'running'}
        fallback={<p class="quiet">You can connect only to a running task.</p>}
      >
        <Show when={props.task.residency === 'swapped_out'}>
          <p class="warn">The task is swapped out and its processes are paused. Swap it in first.</p>
        </Show>
        <For each={waysInto(props.task)}>
          {(way) => (
            <div>
              <h3>{way.name}</h3>
              <div class="row">
                <code class="text">{way.command}</code>
                <CopyButton text={() => way.command} what="command" />
              </div>
            </div>
          )}
        </For>
        <p class="quiet">
          Only the owner of the task may connect, and the GPU server must run with <code>--allow-attach</code>
          .
        </p>
      </Show>
    </section>
  )
}

function waysInto({ id, ports }: TaskBody): readonly Way[] {
  const targets = ports.length === 0 ? [EXAMPLE_PORT] : ports.map(({ target }) => target)
  return [
    { name: 'Run a command', command: `headroom exec ${id} -- nvidia-smi` },
    { name: 'Open a shell', command: `headroom exec -t ${id} -- bash` },
    { name: 'Forward a port to this machine', command: `headroom port-forward ${id} ${targets.join(' ')}` },
  ]
}
