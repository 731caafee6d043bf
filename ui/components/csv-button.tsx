/** Saves all rows that match, not only those of this page, as the controller streams them. */
import { createSignal, Show, type JSX } from 'solid-js'
import { queryText, type Query } from '../api/query-text.ts'
import { storedToken } from '../api/token.ts'
import { save } from '../charts/save.ts'
import { Icon } from '../design/icon.tsx'
import { toast } from '../design/toast.tsx'
import { useCluster } from '../state/cluster.tsx'
import { errorText } from '../api/error-text.ts'

export interface CsvButtonProps {
  /** Path of the list, for example `/tasks`. */
  readonly path: string
  /** Filters without page and order. */
  readonly query: Query
  readonly name: string
}

export function CsvButton(props: CsvButtonProps): JSX.Element {
  const { api } = useCluster()
  const [isBusy, setBusy] = createSignal(false)
  const download = async (): Promise<void> => {
    setBusy(true)
    try {
      const token = storedToken()
      const response = await fetch(
        `${api.base}${props.path}${queryText({ ...props.query, format: 'csv' })}`,
        {
          headers: token === null ? {} : { authorization: `Bearer ${token}` },
        },
      )
      if (!response.ok) throw new Error(`The controller returned HTTP status ${response.status}.`)
      save(`${props.name}.csv`, await response.blob())
    } catch (error) {
      toast({ text: errorText(error) })
    } finally {
      setBusy(false)
    }
  }
  return (
    <button
      type="button"
      title="Download all matching rows as a CSV file"
      disabled={isBusy()}
      onClick={() => void download()}
    >
      <Icon of="download" />
      CSV
      <Show when={isBusy()}>
        <span class="visually-hidden">is being downloaded</span>
      </Show>
    </button>
  )
}
