/**
 * The VRAM of `headroom work serve=PORT hooks` on a declared GPU: a file whose length says what it uses,
 * 1 KiB for each MiB. It moves the memory itself when the server tells it to on the control socket, and keeps
 * running.
 */
import { ftruncateSync, openSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Mib } from '../../protocol/units.ts'

const BYTES_PER_MIB = 1_024
/** Speed of pinned memory over PCIe 4, in MiB per ms. */
const MIB_PER_MS = 20
/** After a restart the server listens again. */
const CONNECT_AGAIN_MS = 500

export class ModelMemory {
  readonly #path: string
  readonly #file: number
  readonly #mib: Mib
  #socket: Socket | null = null
  #isSuspended = false
  #resumed: (() => void)[] = []

  /** Throws when the file cannot be made. */
  constructor(path: string, folder: string, mib: Mib) {
    this.#path = path
    this.#mib = mib
    this.#file = openSync(join(folder, '.headroom-vram'), 'w')
    this.#use(mib)
    this.#connect()
  }

  tell(isBusy: boolean): void {
    this.#say({ busy: isBusy })
  }

  /** Resolves when the memory is in VRAM, with true if it had to be asked for. */
  async present(): Promise<boolean> {
    if (!this.#isSuspended) return false
    this.#say({ want: true })
    await new Promise<void>((resolve) => this.#resumed.push(resolve))
    return true
  }

  #connect(): void {
    const socket = createConnection(this.#path)
    this.#socket = socket
    socket.once('connect', () => {
      this.#say({ swaps: true })
      this.#say({ busy: false })
      if (this.#resumed.length > 0) this.#say({ want: true })
    })
    socket.on('error', () => socket.destroy())
    socket.once('close', () => setTimeout(() => this.#connect(), CONNECT_AGAIN_MS))
    let rest = ''
    socket.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) void this.#obey(line)
    })
  }

  async #obey(line: string): Promise<void> {
    const order = JSON.parse(line) as { readonly suspend?: object; readonly resume?: object }
    if (order.suspend === undefined && order.resume === undefined) return
    const isToSuspend = order.suspend !== undefined
    if (isToSuspend) this.#isSuspended = true
    await wait(this.#mib / MIB_PER_MS)
    this.#use(isToSuspend ? 0 : this.#mib)
    this.#say(isToSuspend ? { suspended: { resident_mib: 0 } } : { resumed: true })
    if (isToSuspend) return
    this.#isSuspended = false
    for (const resolve of this.#resumed.splice(0)) resolve()
  }

  #use(mib: Mib): void {
    ftruncateSync(this.#file, mib * BYTES_PER_MIB)
  }

  #say(message: object): void {
    if (this.#socket?.destroyed === false) this.#socket.write(`${JSON.stringify(message)}\n`)
  }
}
