/**
 * The host names of a gateway. A page of a task must not share its host with the page of the controller:
 * the token of the page lives in that origin, and cookies are sent to every port of a host.
 */
import { isIP } from 'node:net'

const NAME =
  /^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/

/** Returns the name in lower case, or null for other text. */
export function hostNameIn(text: string): string | null {
  const name = text.toLowerCase().replace(/\.$/, '')
  return isIP(name) === 0 && NAME.test(name) ? name : null
}

/** The name in a Host header, without its port; null without one. */
export function hostOf(header: string | undefined): string | null {
  const [, name] = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253})(?::\d{1,5})?$/i.exec(header ?? '') ?? []
  return name?.toLowerCase().replace(/\.$/, '') ?? null
}

/**
 * Says why a gateway must not have one of these names, or null.
 * @param controllerUrl as this gateway reaches it
 * @param controllerHosts other names of it; `*.name`: all below; `*` says nothing
 */
export function whyNotOwn(
  names: readonly string[],
  controllerUrl: string,
  controllerHosts: readonly string[],
): string | null {
  const url = URL.parse(controllerUrl)
  const taken = [...(url === null || url.hostname === '' ? [] : [url.hostname]), ...controllerHosts]
  for (const name of names) {
    if (isLoopbackHost(name)) return `${name} is a name that every program on this host can use`
    const found = taken.find((host) => covers(host.toLowerCase().replace(/\.$/, ''), name))
    if (found !== undefined) return `${name} is a name of the controller (${found})`
  }
  return null
}

function covers(host: string, name: string): boolean {
  return host === name || (host.startsWith('*.') && name.endsWith(host.slice(1)))
}

export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost') || /^(127\.[0-9.]+|\[?::1\]?)$/.test(host)
}
