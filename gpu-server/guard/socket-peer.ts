/**
 * Identifies the process at the other end of a Unix socket (SO_PEERCRED). Node cannot ask the kernel itself:
 * the guard program reads it from the socket, which it inherits (docs/decisions/0112).
 */
import { spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'

export interface SocketPeer {
  readonly uid: number
  /** When it connected; 0: in a PID namespace that this one does not see. */
  readonly pid: number
}

/** Time for the helper to answer. */
const TIMEOUT_MS = 5_000

/**
 * Rejects when the peer is unknown. Pauses the socket; the caller resumes it when it has a listener for data.
 * @param program the guard program
 */
export async function socketPeer(program: string, socket: Socket): Promise<SocketPeer> {
  // As descriptor 3: a child makes an inherited descriptor 0, 1 or 2 blocking, for this process as well.
  const helper = spawn(program, ['--peer'], {
    stdio: ['ignore', 'pipe', 'ignore', socket],
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
  })
  const answer = await new Promise<string>((resolve, reject) => {
    helper.once('error', reject)
    if (helper.stdout !== null) text(helper.stdout).then(resolve, reject)
  })
  const [, uid, pid] = /^(\d{1,10}) (\d{1,10})\n$/.exec(answer) ?? []
  if (uid === undefined || pid === undefined) throw new Error('the user of a connection is unknown')
  return { uid: Number(uid), pid: Number(pid) }
}
