/** The task as the interface returns it. */
import type { JSX } from 'solid-js'
import type { TaskBody } from '../../../controller/api/tasks/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { useWorld } from '../../api/world.ts'
import { CopyButton } from '../../design/copy-button.tsx'

export function TaskJson(props: { readonly task: TaskBody }): JSX.Element {
  const { apiBase } = useWorld()
  const text = (): string => JSON.stringify(props.task, null, 2)
  return (
    <section class="card stack" aria-label="JSON">
      <div class="row">
        <CopyButton text={text} what="JSON" />
        <code>
          GET {apiBase}/tasks/{pathSegment(props.task.id)}
        </code>
      </div>
      <pre tabindex="0" class="text" aria-label="The task as JSON">
        {text()}
      </pre>
    </section>
  )
}
