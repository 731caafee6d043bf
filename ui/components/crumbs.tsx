/** The way back to the list of the page. */
import { A } from '@solidjs/router'
import type { JSX } from 'solid-js'
import { usePath } from '../api/world.ts'
import styles from './crumbs.module.css'

export function Crumbs(props: { readonly path: string; readonly name: string }): JSX.Element {
  const path = usePath()
  return (
    <nav aria-label="Breadcrumb" class={styles['crumbs']}>
      <A href={path(props.path)}>{props.name}</A> <span aria-hidden="true">/</span>
    </nav>
  )
}
