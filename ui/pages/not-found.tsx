import { A } from '@solidjs/router'
import type { JSX } from 'solid-js'

export default function NotFound(): JSX.Element {
  return (
    <>
      <h1>Page not found</h1>
      <p>
        <A href="/">Go to the dashboard</A>
      </p>
    </>
  )
}
