/** `headroom lease` in a separate process, with a fake engine. */
import { spawn, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { NODE_ID } from '../support/api-world.ts'
import { askedApi, type Asked } from '../support/asked.ts'
import { UNMEASURED } from '../support/headroom-command.ts'

const ROOT = join(import.meta.dirname, '../..')
const started = new Set<ChildProcess>()
afterAll(() => started.forEach((child) => child.kill('SIGKILL')))
const WITHIN = { timeout: 90_000 }

let api: Asked
beforeEach(async () => {
  api = await askedApi()
  api.world.leaseMs = 1_500
  await api.world.addNode({ id: NODE_ID, gpus: 2, physicalMib: 49_140 })
})

function lease(...args: readonly string[]) {
  const child = spawn(process.execPath, [join(ROOT, 'cli/main.ts'), 'lease', '--vram', '8Gi', ...args], {
    env: { ...process.env, ...UNMEASURED, VENDOR_CONTROLLER_URL: api.url },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  started.add(child)
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) =>
    child.once('close', (code) => resolve({ code, stdout, stderr })),
  )
  return { process: child, ended, stdout: () => stdout }
}

async function theTask(): Promise<string> {
  await expect.poll(() => api.world.open.size, WITHIN).toBe(1)
  return [...api.world.open.keys()][0] ?? ''
}

const states = () => api.world.final.map(({ state }) => state)

describe('headroom lease', { timeout: 300_000 }, () => {
  it('keeps its lease alive while a command runs, and returns the exit code of the command', async () => {
    const held = lease('--', 'sh', '-c', 'echo "$HEADROOM_TASK_ID $HEADROOM_NODE $HEADROOM_GPUS"; exit 7')
    const id = await theTask()
    expect(api.world.open.get(id)?.spec).toMatchObject({ command: null, vramMib: 8192 })
    // It is also kept alive while it waits.
    await expect.poll(() => api.world.kept.length, WITHIN).toBeGreaterThan(1)
    api.world.place(id, NODE_ID, [0, 1])
    expect(await held.ended).toEqual({
      code: 7,
      stdout: `${id}  node-1  ${NODE_ID}  GPU 0,1\n${id} node-1 0,1\n`,
      stderr: '',
    })
    expect(new Set(api.world.kept)).toEqual(new Set([true]))
    expect(states()).toEqual(['cancelled'])
  })

  it('without a command lasts until Ctrl-C, which ends the lease without an error', async () => {
    const held = lease('--idle')
    const id = await theTask()
    api.world.place(id, NODE_ID)
    await expect.poll(() => held.stdout(), WITHIN).toContain('GPU 0\n')
    const before = api.world.kept.length
    await expect.poll(() => api.world.kept.length, WITHIN).toBeGreaterThan(before + 1)
    expect(new Set(api.world.kept)).toEqual(new Set([false]))
    held.process.kill('SIGINT')
    expect((await held.ended).code).toBe(0)
    expect(states()).toEqual(['cancelled'])
  })

  it('stops waiting at Ctrl-C', async () => {
    const held = lease()
    await theTask()
    await expect.poll(() => api.world.kept.length, WITHIN).toBeGreaterThan(0)
    held.process.kill('SIGINT')
    expect((await held.ended).code).toBe(130)
    expect(states()).toEqual(['cancelled'])
  })

  it('sends a signal to the command, and keeps the lease until the command has ended', async () => {
    const held = lease('--', 'sh', '-c', 'trap "sleep 1; exit 9" TERM; echo up; while :; do sleep 0.05; done')
    const id = await theTask()
    api.world.place(id, NODE_ID)
    await expect.poll(() => held.stdout(), WITHIN).toContain('up\n')
    const before = api.world.kept.length
    held.process.kill('SIGTERM')
    expect((await held.ended).code).toBe(9)
    expect(api.world.kept.length).toBeGreaterThan(before)
  })

  it('ends the command and reports it when the lease ends too early', async () => {
    const held = lease('--', 'sh', '-c', 'echo up; exec sleep 1000')
    const id = await theTask()
    api.world.place(id, NODE_ID)
    await expect.poll(() => held.stdout(), WITHIN).toContain('up\n')
    api.world.finish(id, 'lost', 'node_lost')
    const { code, stderr } = await held.ended
    expect(code).toBe(1)
    expect(stderr).toMatch(/^headroom: the lease has ended: The task is lost.*\n$/)
  })

  it('reports a missing command as a usage error, and ends the lease', async () => {
    const held = lease('--', 'no-such-command-here')
    api.world.place(await theTask(), NODE_ID)
    expect(await held.ended).toMatchObject({
      code: 2,
      stderr: 'error: no-such-command-here: command not found\n',
    })
    expect(states()).toEqual(['cancelled'])
  })
})
