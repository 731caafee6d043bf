/** Users and groups of this host, as in /etc; those of other name services have no name here. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Its members may use the sockets of a server that runs as root. */
export const SOCKET_GROUP = 'headroom'

export function userNameOf(uid: number): string | null {
  return entryOf('passwd', ([, , id]) => id === String(uid))?.[0] ?? null
}

export function groupIdOf(group: string): number | null {
  const entry = entryOf('group', ([name]) => name === group)
  return entry === null ? null : Number(entry[2])
}

function entryOf(table: string, isWanted: (fields: readonly string[]) => boolean): readonly string[] | null {
  const lines = readFileSync(join('/etc', table), 'utf8').split('\n')
  return lines.map((line) => line.split(':')).find((fields) => fields.length > 2 && isWanted(fields)) ?? null
}
