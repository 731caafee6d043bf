/** The result of a sweep as files: the same bytes that `headroom sim sweep --out` writes. */
import { createSignal, For, type JSX } from 'solid-js'
import { pathSegment } from '../../api/client.ts'
import { save } from '../../charts/save.ts'
import { Problem } from '../../design/problem.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { errorText } from '../../api/error-text.ts'

const FILES = [
  { format: 'csv', type: 'text/csv', label: 'CSV' },
  { format: 'html', type: 'text/html', label: 'Report (HTML)' },
  { format: 'json', type: 'application/json', label: 'JSON' },
] as const

type File = (typeof FILES)[number]

export function Downloads(props: { readonly id: string; readonly name: string }): JSX.Element {
  const { api } = useCluster()
  const [problem, setProblem] = createSignal('')
  const [isBusy, setBusy] = createSignal(false)
  // A link could not carry the token that this page may need.
  const download = async ({ format, type }: File): Promise<void> => {
    setBusy(true)
    setProblem('')
    try {
      const content = await api.get<unknown>(`/simulations/${pathSegment(props.id)}/report`, { format })
      const text = typeof content === 'string' ? content : `${JSON.stringify(content, null, 2)}\n`
      save(`${props.name}.${format}`, new Blob([text], { type }))
    } catch (error) {
      setProblem(errorText(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <div class="row" role="group" aria-label="Download">
      <span>Download</span>
      <For each={FILES}>
        {(file) => (
          <button disabled={isBusy()} onClick={() => void download(file)}>
            {file.label}
          </button>
        )}
      </For>
      <span class="quiet">CSV: one row per run. HTML: a complete report with charts. JSON: all data.</span>
      <Problem text={problem()} />
    </div>
  )
}
