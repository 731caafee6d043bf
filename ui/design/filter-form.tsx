/** The filters of a list. On a narrow screen they are behind a button, so the list begins higher up. */
import { createSignal, createUniqueId, type JSX } from 'solid-js'
import { Icon } from './icon.tsx'
import styles from './filter-form.module.css'

export interface FilterFormProps {
  /** Accessible name of the search region. */
  readonly name: string
  /** Number of filters that apply. */
  readonly active: number
  readonly children: JSX.Element
  /** Controls that are always visible. */
  readonly beside?: JSX.Element
}

export function FilterForm(props: FilterFormProps): JSX.Element {
  const [isOpen, setOpen] = createSignal(false)
  const id = createUniqueId()
  return (
    <form class="filters" role="search" aria-label={props.name} onSubmit={(event) => event.preventDefault()}>
      <button
        type="button"
        class={styles['toggle']}
        aria-expanded={isOpen()}
        aria-controls={id}
        onClick={() => setOpen(!isOpen())}
      >
        <Icon of="list-filter" />
        {props.active === 0 ? 'Filters' : `Filters (${props.active})`}
      </button>
      <div id={id} class={styles['fields']} data-open={isOpen()}>
        {props.children}
      </div>
      {props.beside}
    </form>
  )
}
