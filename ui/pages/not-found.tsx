import { A } from '@solidjs/router'
import type { JSX } from 'solid-js'
import { usePageTitle } from '../state/page-title.ts'

export default function NotFound(): JSX.Element {
  usePageTitle(() => 'Page not found')
  return (
    <>
      <h1>Page not found</h1>
      <p>
        <A href="/">Go to the dashboard</A>
      </p>
    </>
  )
}
