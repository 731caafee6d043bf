/**
 * The processes of leases. A process registers itself at a Unix socket with a token that the controller gives
 * to the owner of the lease; the kernel names the process (SO_PEERCRED), so that it registers no other. What
 * is registered is kept in the state folder: a later server continues with it.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync, renameSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import type { SocketPeer } from '../guard/socket-peer.ts'
import { folderNameOf } from '../guard/guard-folder.ts'
import { startTimeOf, usersOf, type ProcessKey } from '../guard/process-table.ts'
import { AttachedProcess } from './attached-process.ts'
import { openAttachSocket, type AttachAnswer } from './attach-socket.ts'
import type { LineSocket } from './line-socket.ts'

/** The attempt of a lease. */
export interface LeaseRef {
  readonly taskId: string
  readonly attempt: number
}

export interface AttachmentsOptions {
  readonly socketPath: string
  /** Group whose members may connect; null: only the server's user. */
  readonly group: number | null
  /** Exists. */
  readonly stateFolder: string
  readonly peerOf: (socket: Socket) => Promise<SocketPeer>
  readonly now: () => number
  readonly wait: (ms: number) => Promise<void>
}

/** The device that owns the leases. */
export interface AttachmentsListener {
  /** Returns the variables for the process, or why the lease takes none. */
  attach(lease: LeaseRef, process: AttachedProcess): Readonly<Record<string, string>> | string
  /** Returns null when the process is no longer part of the lease, or why it still is. */
  detach(lease: LeaseRef): string | null
  signalled(lease: LeaseRef, isBusy: boolean): void
  /** True if the process belongs to a task or a lease of this server. */
  has(pid: number): boolean
}

interface Registration extends LeaseRef, ProcessKey {}

/** Time between the token and the registration. */
const TOKEN_MS = 60_000

export class Attachments {
  readonly #options: AttachmentsOptions
  readonly #folder: string
  /** Expected attachments, by attempt. */
  readonly #expected = new Map<string, LeaseRef & { readonly hash: Buffer; readonly until: number }>()
  readonly #leases = new Map<number, LeaseRef & { readonly process: AttachedProcess }>()
  #socket: LineSocket | null = null
  #listener: AttachmentsListener | null = null

  constructor(options: AttachmentsOptions) {
    this.#options = options
    this.#folder = join(options.stateFolder, 'attached')
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
  }

  /** Rejects when it cannot listen. */
  async open(listener: AttachmentsListener): Promise<void> {
    this.#listener = listener
    const { socketPath, group, peerOf } = this.#options
    this.#socket = await openAttachSocket(socketPath, group, peerOf, {
      attach: (token, peer) => this.#attach(token, peer),
      detach: (peer) => this.#detach(peer),
      busy: (isBusy, peer) => this.#busy(isBusy, peer),
    })
  }

  close(): void {
    this.#socket?.close()
    this.#listener = null
  }

  /** Returns the registered processes that live. */
  load(): readonly (LeaseRef & { readonly process: AttachedProcess })[] {
    for (const name of readdirSync(this.#folder)) {
      const record = readRecord(join(this.#folder, name))
      const process = record === null ? null : this.#processOf(record)
      if (record === null || process === null || !process.isAlive) rmSync(join(this.#folder, name))
      else this.#leases.set(record.pid, { taskId: record.taskId, attempt: record.attempt, process })
    }
    return [...this.#leases.values()]
  }

  /** Returns the path of the socket; null: it does not listen. */
  expect({ taskId, attempt }: LeaseRef, tokenSha256: string): string | null {
    if (this.#socket === null) return null
    const until = this.#options.now() + TOKEN_MS
    const hash = Buffer.from(tokenSha256, 'hex')
    this.#expected.set(folderNameOf(taskId, attempt), { taskId, attempt, hash, until })
    return this.#options.socketPath
  }

  /** The lease has ended, or its process has. */
  forget({ taskId, attempt }: LeaseRef): void {
    const key = folderNameOf(taskId, attempt)
    this.#expected.delete(key)
    rmSync(join(this.#folder, key), { force: true })
    for (const [pid, lease] of this.#leases)
      if (lease.taskId === taskId && lease.attempt === attempt) this.#leases.delete(pid)
  }

  #attach(token: string, { uid, pid }: SocketPeer): AttachAnswer {
    const expected = this.#withToken(token)
    if (expected === null) return { error: 'unknown or expired token' }
    if (pid === 0) return { error: 'the process is in another PID namespace' }
    const startTime = startTimeOf(pid)
    // The pid is of the moment of the connection: it may have gone to a process of another user.
    if (startTime === null || !usersOf(pid).every((user) => user === uid))
      return { error: 'the process is not known, or has another user than its connection' }
    const own = process.getuid?.() ?? 0
    if (own !== 0 && own !== uid) return { error: 'this server cannot stop processes of other users' }
    if (this.#leases.has(pid) || this.#listener?.has(pid) === true)
      return { error: 'the process already belongs to a task or a lease' }
    return this.#register(expected, { pid, startTime })
  }

  #register({ taskId, attempt }: LeaseRef, key: ProcessKey): AttachAnswer {
    const attached = this.#processOf(key)
    this.#write({ taskId, attempt, ...key })
    const environment = this.#listener?.attach({ taskId, attempt }, attached) ?? 'the server ends'
    if (typeof environment === 'string') {
      this.forget({ taskId, attempt })
      return { error: environment }
    }
    this.#expected.delete(folderNameOf(taskId, attempt))
    this.#leases.set(key.pid, { taskId, attempt, process: attached })
    return { attached: true, environment }
  }

  #detach(peer: SocketPeer): AttachAnswer {
    const lease = this.#leaseOf(peer)
    if (lease === null) return { error: 'this process belongs to no lease' }
    const why = this.#listener?.detach(lease) ?? null
    if (why !== null) return { error: why }
    this.forget(lease)
    return { detached: true }
  }

  #busy(isBusy: boolean, peer: SocketPeer): AttachAnswer {
    const lease = this.#leaseOf(peer)
    if (lease === null) return { error: 'this process belongs to no lease' }
    this.#listener?.signalled(lease, isBusy)
    return { busy: isBusy }
  }

  #leaseOf({ pid }: SocketPeer): LeaseRef | null {
    const lease = this.#leases.get(pid)
    return lease !== undefined && lease.process.isAlive ? lease : null
  }

  #withToken(token: string): LeaseRef | null {
    const hash = createHash('sha256').update(token).digest()
    const now = this.#options.now()
    for (const [key, expected] of this.#expected) {
      if (expected.until < now) this.#expected.delete(key)
      else if (expected.hash.length === hash.length && timingSafeEqual(expected.hash, hash)) return expected
    }
    return null
  }

  #processOf({ pid, startTime }: ProcessKey): AttachedProcess {
    return new AttachedProcess({ key: { pid, startTime }, wait: this.#options.wait })
  }

  /** Durable before the process counts as the lease's. */
  #write(record: Registration): void {
    const path = join(this.#folder, folderNameOf(record.taskId, record.attempt))
    writeFileSync(`${path}.new`, JSON.stringify(record), { mode: 0o600, flush: true })
    renameSync(`${path}.new`, path)
  }
}

function readRecord(path: string): Registration | null {
  try {
    const record = JSON.parse(readFileSync(path, 'utf8')) as Partial<Registration>
    const { taskId, attempt, pid, startTime } = record
    const isWhole = [attempt, pid, startTime].every(Number.isSafeInteger) && typeof taskId === 'string'
    return isWhole ? (record as Registration) : null
  } catch {
    return null
  }
}
