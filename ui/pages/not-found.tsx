import { A } from '@solidjs/router'
import type { JSX } from 'solid-js'

export default function NotFound(): JSX.Element {
  return (
    <>
      <h1>There is no such page</h1>
      <p>
        <A href="/">To the dashboard</A>
      </p>
    </>
  )
}
