/** Search field at the top of every page, for names and ids of tasks and nodes. */
import { useLocation, useNavigate } from '@solidjs/router'
import { createMemo, type JSX } from 'solid-js'
import { queryText } from '../api/query-text.ts'
import { usePath } from '../api/world.ts'
import { Icon } from '../design/icon.tsx'
import styles from './shell.module.css'

export function SearchField(): JSX.Element {
  const navigate = useNavigate()
  const location = useLocation()
  const path = usePath()
  /** The text of the search page, while that page is shown. */
  const asked = createMemo(() =>
    location.pathname === path('/search') ? String(location.query['q'] ?? '') : '',
  )
  let input: HTMLInputElement | undefined
  const go = (event: SubmitEvent): void => {
    event.preventDefault()
    const text = input?.value.trim() ?? ''
    if (text !== '') navigate(path(`/search${queryText({ q: text })}`))
  }
  return (
    <form role="search" aria-label="Tasks and nodes" class={styles['search']} onSubmit={go}>
      <Icon of="search" />
      <input
        ref={(element) => (input = element)}
        type="search"
        maxLength="200"
        aria-label="Search tasks and nodes"
        placeholder="Search tasks and nodes"
        value={asked()}
      />
      <kbd aria-hidden="true">/</kbd>
    </form>
  )
}
