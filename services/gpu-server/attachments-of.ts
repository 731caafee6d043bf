/** Where the processes of leases register: a socket in the state folder. */
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Clock } from '../../controller/ports/clock.ts'
import { Attachments } from '../../gpu-server/devices/attachments.ts'
import { socketPeer } from '../../gpu-server/guard/socket-peer.ts'
import { groupIdOf, SOCKET_GROUP } from '../host-users.ts'

interface Place {
  readonly stateFolder: string
  /** The guard program. */
  readonly program: string
}

const FOLDER = 's'
/** Users who may connect must reach the socket, and nothing else there. */
const FOLDER_MODE = 0o711

/**
 * Returns the attachments of a server. If it runs as root, members of the group may connect; otherwise only
 * its user may.
 */
export function attachmentsOf({ stateFolder, program }: Place, clock: Clock): Attachments {
  const folder = join(stateFolder, FOLDER)
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, FOLDER_MODE)
  return new Attachments({
    socketPath: join(folder, 'attach.sock'),
    group: process.getuid?.() === 0 ? groupIdOf(SOCKET_GROUP) : null,
    stateFolder,
    peerOf: (socket) => socketPeer(program, socket),
    now: () => clock.now(),
    wait: (ms) => wait(ms),
  })
}
