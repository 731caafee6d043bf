/** Icons of lucide. They are decoration: the text next to them has the meaning. */
import { icons } from '@iconify-json/lucide/icons.json'
import type { JSX } from 'solid-js'
import type { IconName } from './icon-names.ts'
import styles from './icon.module.css'

export function Icon(props: { readonly of: IconName }): JSX.Element {
  // eslint-disable-next-line solid/reactivity -- an icon never changes
  const markup = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24">${icons[props.of].body}</svg>`
  const svg = new DOMParser().parseFromString(markup, 'image/svg+xml').documentElement
  svg.setAttribute('aria-hidden', 'true')
  svg.classList.add(styles['icon'] as string)
  return document.importNode(svg, true)
}
