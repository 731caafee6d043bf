/** Links to the page of a node or task of this cluster. */
import { A } from '@solidjs/router'
import type { JSX } from 'solid-js'
import { pathSegment } from '../api/client.ts'
import { usePath } from '../api/world.ts'

interface LinkProps {
  readonly id: string
  readonly name: string
  /** Classes; omitted: `name`, which wraps at a fixed width. */
  readonly class?: string
  readonly title?: string
}

export function NodeLink(props: LinkProps): JSX.Element {
  const path = usePath()
  return (
    <A class={props.class ?? 'name'} href={path(`/nodes/${pathSegment(props.id)}`)} title={props.title}>
      {props.name}
    </A>
  )
}

export function TaskLink(props: LinkProps): JSX.Element {
  const path = usePath()
  return (
    <A class={props.class ?? 'name'} href={path(`/tasks/${pathSegment(props.id)}`)} title={props.title}>
      {props.name}
    </A>
  )
}
