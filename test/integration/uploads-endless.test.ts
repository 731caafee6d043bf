/** An endless upload of a submitter must not stop the controller: the store shares its disk. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, statfsSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { temporaryFolder } from '../support/headroom-command.ts'
import { serve, type Served } from '../support/served.ts'

const MIB = 1_048_576
const FLOOR_MIB = 150
const ENV = {
  CONTROLLER_SIMULATED_FLEET: join(import.meta.dirname, '../../scenarios/reserve-kept.scenario.yaml'),
  CONTROLLER_UPLOADS_MIN_FREE_MIB: String(FLOOR_MIB),
}

describe.runIf(process.getuid?.() === 0)('An endless upload of a trace', () => {
  it(
    'costs the controller neither its disk nor a task, whether held open or left by a kill',
    { timeout: 300_000 },
    async () => {
      const disk = smallDisk(320)
      let served = await serve(disk, ENV)
      const upload = await endless(served)
      const { refusal } = await sendUntilRefused(upload)
      expect(refusal).toMatch(/^HTTP\/1\.1 507 .*"code":"uploads_full"/s)
      expect(freeMib(disk)).toBeGreaterThan(FLOOR_MIB - 17) // checked every 16 MiB
      expect(await submit(served)).toBe(201)
      // The upload is held open below the limit, and the controller dies: its partial file must be removed.
      const second = await endless(served)
      second.write(Buffer.alloc(8 * MIB))
      await until('a partial file is there', () => partialFiles(disk).length > 0)
      served.process.kill('SIGKILL')
      await served.ended
      expect(partialFiles(disk)).toHaveLength(1)
      served = await serve(disk, ENV)
      expect(partialFiles(disk)).toEqual([])
      expect(await submit(served)).toBe(201)
      served.process.kill('SIGTERM')
      expect(await served.ended).toBe(0)
    },
  )
})

function smallDisk(mib: number): string {
  const folder = temporaryFolder()
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m,mode=700`, 'headroom-test', folder])
  onTestFinished(() => void execFileSync('umount', ['-l', folder]))
  return folder
}

async function endless({ url }: Served): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  const head = [
    'POST /api/v1/traces?name=endless HTTP/1.1',
    `Host: ${hostname}:${port}`,
    'Content-Type: application/octet-stream',
  ]
  socket.write([...head, 'Content-Length: 1000000000', '', ''].join('\r\n'))
  return socket
}

/** Sends as much as the controller accepts and then stops; the connection stays open on this side. */
async function sendUntilRefused(socket: Socket): Promise<{ readonly refusal: string }> {
  let refusal = ''
  socket.on('data', (part: Buffer) => (refusal += part.toString()))
  for (let sent = 0; sent < 990 * MIB && refusal === '' && !socket.destroyed; sent += MIB) {
    socket.write(Buffer.alloc(MIB, 'x'))
    await until('it is taken', () => socket.writableLength < 2 * MIB || refusal !== '' || socket.destroyed)
  }
  await until('it is refused', () => refusal.includes('\r\n\r\n'))
  return { refusal }
}

async function submit({ url }: Served): Promise<number> {
  const body = JSON.stringify({ vram_mib: 1024 })
  const answer = await fetch(`${url}/api/v1/tasks`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body,
  })
  return answer.status
}

function partialFiles(dataDir: string): readonly string[] {
  return readdirSync(join(dataDir, 'simulations/traces')).filter((name) => name.startsWith('.'))
}

function freeMib(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return (bavail * bsize) / MIB
}

async function until(what: string, fact: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!fact()) {
    if (performance.now() > deadline) throw new Error(`not within 20 s: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
