/** The colours of the tokens as values, for canvases: a token may be one colour in light and one in dark. */

let probe: HTMLElement | undefined

/**
 * Returns a colour as `#rrggbb`.
 * @param token name of a custom property, such as `--resident`
 */
export function colourOf(token: string): string {
  if (probe === undefined || !probe.isConnected) {
    probe = document.createElement('span')
    probe.hidden = true
    document.body.append(probe)
  }
  probe.style.color = `var(${token})`
  const parts = getComputedStyle(probe).color.match(/\d+/g) ?? []
  return `#${parts
    .slice(0, 3)
    .map((part) => Number(part).toString(16).padStart(2, '0'))
    .join('')}`
}
