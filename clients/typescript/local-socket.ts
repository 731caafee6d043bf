/** The sockets of a server without a controller (`headroom gpu-server --standalone`) on this host. */
import { accessSync, constants, statSync } from 'node:fs'
import { join } from 'node:path'

type Environment = Readonly<Record<string, string | undefined>>

const NAME = 'gpu-server.sock'

/** Socket of a server that runs as root. */
export const SYSTEM_SOCKET = `/run/headroom/${NAME}`

/** Returns the socket of a server that runs as the current user; null without XDG_RUNTIME_DIR. */
export function userSocket(env: Environment): string | null {
  const folder = env['XDG_RUNTIME_DIR']
  return folder ? join(folder, 'headroom', NAME) : null
}

/** Returns the first socket that the current user may use, or null. */
export function localSocket(env: Environment): string | null {
  return [SYSTEM_SOCKET, userSocket(env)].find((path) => path !== null && isUsable(path)) ?? null
}

function isUsable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
    return statSync(path).isSocket()
  } catch {
    return false
  }
}
