/** Icons of lucide, as SVG elements. They are decoration: the text next to them has the meaning. */
import type { IconNode } from 'lucide'
import type { JSX } from 'solid-js'
import styles from './icon.module.css'

const SVG = 'http://www.w3.org/2000/svg'

export function Icon(props: { readonly of: IconNode }): JSX.Element {
  const svg = document.createElementNS(SVG, 'svg')
  for (const [name, value] of [['viewBox', '0 0 24 24'] as const, ['aria-hidden', 'true'] as const])
    svg.setAttribute(name, value)
  svg.classList.add(styles['icon'] as string)
  // eslint-disable-next-line solid/reactivity -- an icon never changes
  for (const [tag, attributes] of props.of) {
    const part = document.createElementNS(SVG, tag)
    for (const [name, value] of Object.entries(attributes)) part.setAttribute(name, String(value))
    svg.append(part)
  }
  return svg
}
