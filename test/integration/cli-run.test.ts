/** `headroom run` in a separate process, with a fake engine. */
import type { Task } from '../../controller/model/placement.ts'
import { spawn, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import type { FakeController } from '../support/api-world.ts'
import { NODE_ID } from '../support/api-world.ts'
import { askedApi, deadAddress, type Asked } from '../support/asked.ts'
import { FROM_SOURCES_ENV, headroom, UNMEASURED, type Ended } from '../support/headroom-command.ts'
import { WrittenOutput } from '../support/written-output.ts'

const ROOT = join(import.meta.dirname, '../..')
const started = new Set<ChildProcess>()
afterAll(() => started.forEach((child) => child.kill('SIGKILL')))

interface Running {
  readonly process: ChildProcess
  readonly ended: Promise<{ readonly code: number | null; readonly stdout: Buffer; readonly stderr: string }>
  stdout(): string
  stderr(): string
}

let api: Asked
let output: WrittenOutput

beforeEach(async () => {
  output = new WrittenOutput()
  api = await askedApi({ logs: output })
  await api.world.addNode({ id: NODE_ID, gpus: 2, physicalMib: 49_140 })
})

function start(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  stdin: 'ignore' | 'pipe' = 'ignore',
): Running {
  const child = spawn(
    process.execPath,
    ['--import', join(ROOT, 'cli/require-node.mjs'), join(ROOT, 'cli/main.ts'), 'run', ...args],
    {
      env: { ...process.env, ...UNMEASURED, ...FROM_SOURCES_ENV, VENDOR_CONTROLLER_URL: api.url, ...env },
      stdio: [stdin, 'pipe', 'pipe'],
    },
  )
  started.add(child)
  const stdout: Buffer[] = []
  let stderr = ''
  child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk))
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const ended = new Promise<{ code: number | null; stdout: Buffer; stderr: string }>((resolve) =>
    child.once('close', (code) => resolve({ code, stdout: Buffer.concat(stdout), stderr })),
  )
  return { process: child, ended, stdout: () => Buffer.concat(stdout).toString(), stderr: () => stderr }
}

/** For tests of its end: without signals, input or output on the way it may share a process. */
const ran = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  headroom(['run', ...args], { env: { VENDOR_CONTROLLER_URL: api.url, ...env } })

/** Returns the only open task, once there is one. */
async function theTask(world: FakeController): Promise<string> {
  await expect.poll(() => world.open.size).toBe(1)
  return [...world.open.keys()][0] ?? ''
}

function place(world: FakeController, id: string, attempt = 1): void {
  const task = world.open.get(id)
  if (task === undefined) throw new Error(`no open task ${id}`)
  task.attempt = attempt
  world.place(id, NODE_ID)
  world.addEvent('task_placed', { taskId: id, nodeId: NODE_ID, data: { attempt } })
}

function finish(
  world: FakeController,
  id: string,
  exitCode: number | null,
  endReason: string | null = null,
): void {
  const task = world.open.get(id)
  if (task !== undefined) task.exitCode = exitCode
  output.end(id, task?.attempt ?? 1)
  world.finish(id, exitCode === 0 ? 'completed' : 'failed', endReason)
}

describe('headroom run', { timeout: 300_000 }, () => {
  it('passes on both output streams, byte for byte, and the exit code', async () => {
    const run = start(['--vram', '8Gi', '--', 'train', '--epochs', '3'])
    const id = await theTask(api.world)
    expect(api.world.open.get(id)?.spec).toMatchObject({
      command: ['train', '--epochs', '3'],
      vramMib: 8192,
      noswap: 0,
      priority: 2,
      gpuCount: 1,
    })
    place(api.world, id)
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, n) => n % 251))
    output.write(id, 'stdout', bytes)
    output.write(id, 'stderr', 'a warning\n')
    await expect.poll(() => run.stderr()).toContain('a warning\n')
    finish(api.world, id, 7)
    const { code, stdout, stderr } = await run.ended
    expect({ code, stderr }).toEqual({ code: 7, stderr: 'a warning\n' })
    expect(stdout.equals(bytes)).toBe(true)
  })

  it.each([
    { exitCode: 0, reason: null, code: 0, says: '' },
    {
      exitCode: 137,
      reason: 'VRAM_LIMIT_EXCEEDED: it used 7168 MiB',
      code: 137,
      says: 'headroom: the task failed: VRAM_LIMIT_EXCEEDED: it used 7168 MiB\n',
    },
    {
      exitCode: 139,
      reason: 'signal SIGSEGV',
      code: 139,
      says: 'headroom: the task failed: signal SIGSEGV\n',
    },
    {
      exitCode: null,
      reason: 'killed by SIGKILL',
      code: 137,
      says: 'headroom: the task failed: killed by SIGKILL\n',
    },
    {
      exitCode: null,
      reason: 'its server went away',
      code: 1,
      says: 'headroom: the task failed: its server went away\n',
    },
  ])(
    'exits with $code for a task that ends with $exitCode, $reason',
    async ({ exitCode, reason, code, says }) => {
      const end = ran(['--vram', '1Gi', 'true'])
      const id = await theTask(api.world)
      place(api.world, id)
      finish(api.world, id, exitCode, reason)
      expect(await end).toMatchObject({ code, stderr: says })
    },
  )

  it.each([
    { startedAt: null, says: 'headroom: the task failed: command x: No such file or directory\n' },
    {
      startedAt: 1,
      says: new RegExp(
        /^(headroom: cannot read the rest of std(out|err): the GPU server no longer has it\n){2}headroom: /
          .source + /the task failed/.source,
      ),
    },
  ])(
    'says that unavailable output is lost, if the task ran at all: $startedAt',
    async ({ startedAt, says }) => {
      output.trouble = 'unknown_attempt'
      const end = ran(['--vram', '1Gi', 'x'])
      const id = await theTask(api.world)
      place(api.world, id)
      const task = api.world.open.get(id)
      if (task !== undefined) task.firstStartedAt = startedAt
      finish(api.world, id, null, 'command x: No such file or directory')
      const { code, stderr } = await end
      expect(code).toBe(1)
      expect(stderr).toMatch(says)
      if (startedAt === null) expect(stderr).toBe(says)
    },
  )

  it('reports once that no node could start the task, also without a terminal', async () => {
    api.world.waitReason = 'START_REFUSED'
    const run = start(['--vram', '1Gi', 'no-such-program'])
    const id = await theTask(api.world)
    await expect.poll(run.stderr).toContain('Press Ctrl-C to cancel the task')
    place(api.world, id)
    finish(api.world, id, 0)
    const { stderr } = await run.ended
    expect(stderr).toBe(
      `headroom: task task-1 (${id.slice(0, 8)}): It needs 1024 MiB. Press Ctrl-C to cancel the task.\n`,
    )
  })

  it('also reports a refused start while it already waits for output', async () => {
    const run = start(['--vram', '1Gi', 'no-such-program'])
    const id = await theTask(api.world)
    place(api.world, id)
    await expect.poll(() => output.reads).toBeGreaterThan(0)
    api.world.waitReason = 'START_REFUSED'
    Object.assign(api.world.open.get(id) ?? {}, { state: 'pending', placement: null })
    await expect
      .poll(run.stderr)
      .toBe(
        `headroom: task task-1 (${id.slice(0, 8)}): It needs 1024 MiB. Press Ctrl-C to cancel the task.\n`,
      )
    place(api.world, id, 2)
    finish(api.world, id, 0)
    expect((await run.ended).code).toBe(0)
  })

  it('reports once that a wait never ends, also without a terminal', async () => {
    api.world.waitReason = 'GROUP_NOT_FOUND'
    const run = start(['--vram', '1Gi', 'x'])
    const id = await theTask(api.world)
    await expect.poll(run.stderr).toContain('It cannot start until it or the cluster is changed')
    place(api.world, id)
    finish(api.world, id, 0)
    const { code, stderr } = await run.ended
    expect(code).toBe(0)
    expect(stderr).toBe(
      `headroom: task task-1 (${id.slice(0, 8)}): It needs 1024 MiB. ` +
        'It cannot start until it or the cluster is changed. Press Ctrl-C to cancel the task.\n',
    )
  })

  it('cancels a task that can never start if asked to, and one on hold at its timeout only', async () => {
    api.world.waitReason = 'NEVER_FITS'
    const never = await ran(['--vram', '1Gi', '--fail-if-never-fits', 'x'])
    expect(never).toMatchObject({ code: 1, stdout: '' })
    expect(never.stderr).toContain(
      'headroom: cancelling the task: it cannot start unless it or the cluster is changed ' +
        '(--fail-if-never-fits)\n',
    )
    expect(api.world.open.size).toBe(0)
    api.world.waitReason = 'HELD'
    const held = await ran(['--vram', '1Gi', '--fail-if-never-fits', '--timeout', '2s', 'x'])
    expect(held.code).toBe(124)
    expect(held.stderr).toContain('headroom: cancelling the task: the task has not ended within 2s\n')
    expect(api.world.final.map(({ state }) => state)).toEqual(['cancelled', 'cancelled'])
  })

  it('has no timeout for a task that ends in time, or that it does not wait for', async () => {
    const end = ran(['--vram', '1Gi', '--timeout', '10m', '--max-runtime', '2h', '--', 'x'])
    const id = await theTask(api.world)
    expect(api.world.open.get(id)?.spec.maxRuntimeMs).toBe(7_200_000)
    place(api.world, id)
    finish(api.world, id, 0)
    expect((await end).code).toBe(0)
    const detached = await ran(['--vram', '1Gi', '--timeout', '10m', '--detach', '--', 'x'])
    expect(detached).toMatchObject({ code: 2, stderr: expect.stringContaining('--detach') as string })
  })

  it('reports that stdin is not passed on if it has data, and does not wait for its end', async () => {
    const run = start(['--vram', '1Gi', '--', 'wc', '-c'], {}, 'pipe')
    run.process.stdin?.write('data\n')
    const id = await theTask(api.world)
    await expect.poll(run.stderr).toContain('stdin')
    place(api.world, id)
    finish(api.world, id, 0)
    expect(await run.ended).toMatchObject({
      code: 0,
      stderr: 'headroom: stdin is not passed to the task\n',
    })
    const silent = start(['--vram', '1Gi', 'x'], {}, 'pipe')
    const second = await theTask(api.world)
    place(api.world, second)
    finish(api.world, second, 0)
    expect(await silent.ended).toMatchObject({ code: 0, stderr: '' })
  })

  it('uses the variables of the original client for missing flags, and names them', async () => {
    const env = { REQUIRED_VRAM: '2Gi', PRIO: '1', GPU_COUNT: '2', GPU_MODE: 'exclusive' }
    const all = await ran(['--detach', '--', 'x'], env)
    expect(all).toMatchObject({
      code: 0,
      stderr:
        'headroom: options read from the environment: REQUIRED_VRAM=2Gi, PRIO=1, GPU_COUNT=2, ' +
        'GPU_MODE=exclusive\n',
    })
    expect(api.world.open.get(all.stdout.trim())?.spec).toMatchObject({
      vramMib: 2048,
      priority: 1,
      gpuCount: 2,
      gpuMode: 'exclusive',
    })
    const flags = ['--detach', '--vram', '1Gi', '--priority', 'P3', '--gpus', '1', '--', 'x']
    const some = await ran(flags, { ...env, GPU_MODE: '' })
    expect(some).toMatchObject({ code: 0, stderr: '' })
    expect(api.world.open.get(some.stdout.trim())?.spec).toMatchObject({
      vramMib: 1024,
      priority: 3,
      gpuCount: 1,
      gpuMode: 'shared',
    })
  })

  it('submits what flags and environment say; flags win', async () => {
    const env = { VENDOR_SWAP_FROM_VRAM: '0', CONTROLLER_NODE_GROUP_IDS: 'a, b' }
    const submitted = async (args: readonly string[], variables = env) => {
      const { code, stdout, stderr } = await ran(['--detach', '--vram', '1Gi', ...args], variables)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      return api.world.open.get(stdout.trim())?.spec
    }
    expect(await submitted(['--', 'x'])).toMatchObject({ noswap: 1, groups: ['a', 'b'] })
    expect(await submitted(['--swap', '--group', 'c', '--group', 'd', '--', 'x'])).toMatchObject({
      noswap: 0,
      groups: ['c', 'd'],
    })
    expect(await submitted(['--noswap', '--', 'x'], { ...env, VENDOR_SWAP_FROM_VRAM: '1' })).toMatchObject({
      noswap: 1,
    })
    const all = [
      '--gpus',
      '2',
      '--priority',
      'P0',
      '--name',
      'n',
      '--label',
      'k=v=w',
      '--exclusive',
      '--on-node-loss',
      'requeue',
    ]
    expect(await submitted([...all, '--max-runtime', '60', '--env', 'A=b c', '--', 'x', '-y'])).toMatchObject(
      {
        gpuCount: 2,
        priority: 0,
        name: 'n',
        labels: { k: 'v=w' },
        gpuMode: 'exclusive',
        onNodeLoss: 'requeue',
        maxRuntimeMs: 60_000,
        command: ['x', '-y'],
        environment: { names: ['A'] },
      },
    )
  })

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'cancels the task at %s and exits with the matching code',
    async (signal) => {
      const run = start(['--vram', '1Gi', '--', 'sleep', '1000'])
      const id = await theTask(api.world)
      place(api.world, id)
      output.write(id, 'stdout', 'up\n')
      await expect.poll(() => run.stdout()).toBe('up\n')
      run.process.kill(signal)
      await expect
        .poll(() => api.world.final.map((task) => [task.id, task.state]))
        .toEqual([[id, 'cancelled']])
      output.end(id)
      const { code, stderr } = await run.ended
      expect(code).toBe({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }[signal])
      expect(stderr).toContain('cancelling the task')
    },
  )

  it('also cancels a pending task', async () => {
    const run = start(['--vram', '1Gi', '--', 'x'])
    await theTask(api.world)
    // It has its response and waits, once it has requested the explanation of the task.
    await expect.poll(() => api.world.explained).toBeGreaterThan(1)
    run.process.kill('SIGINT')
    expect(await run.ended).toMatchObject({
      code: 130,
      stderr: expect.not.stringContaining('cannot be read'),
    })
    expect(api.world.final.map(({ state }) => state)).toEqual(['cancelled'])
  })

  it('ends the task at once at the second Ctrl-C, and exits at the third in any case', async () => {
    // The server takes its time.
    const asked: string[] = []
    const slowly =
      (how: string) =>
      (id: string, _by: string, answer: (answer: { readonly ok: true; readonly value: Task }) => void) => {
        asked.push(how)
        const task = api.world.open.get(id)
        if (task !== undefined) queueMicrotask(() => answer({ ok: true, value: task }))
      }
    api.world.commands.cancelTask = slowly('with a grace')
    api.world.commands.cancelTaskNow = slowly('now')
    const run = start(['--vram', '1Gi', '--', 'x'])
    const id = await theTask(api.world)
    place(api.world, id)
    output.write(id, 'stderr', 'up\n')
    await expect.poll(() => run.stderr()).toContain('up\n')
    run.process.kill('SIGINT')
    await expect.poll(() => run.stderr()).toContain('Ctrl-C again')
    run.process.kill('SIGINT')
    await expect.poll(() => asked).toEqual(['with a grace', 'now'])
    run.process.kill('SIGINT')
    expect((await run.ended).code).toBe(130)
    expect(api.world.open.has(id)).toBe(true)
  })

  it('survives a restart of the controller without lost or repeated output', async () => {
    const run = start(['--vram', '1Gi', '--', 'x'])
    const id = await theTask(api.world)
    place(api.world, id)
    output.write(id, 'stdout', 'before\n')
    await expect.poll(() => run.stdout()).toBe('before\n')
    await api.close()
    await expect.poll(() => run.stderr()).toContain('waiting for the controller')
    output.write(id, 'stdout', 'meanwhile\n')
    await askedApi({ logs: output }, api.world, Number(new URL(api.url).port))
    await expect.poll(() => run.stdout()).toBe('before\nmeanwhile\n')
    finish(api.world, id, 3)
    const { code, stdout, stderr } = await run.ended
    expect({ code, text: stdout.toString() }).toEqual({ code: 3, text: 'before\nmeanwhile\n' })
    expect(stderr.match(/waiting for the controller/g)).toHaveLength(1)
  })

  it('follows the output of a restarted task from its first byte', async () => {
    const run = start(['--vram', '1Gi', '--', 'x'])
    const id = await theTask(api.world)
    place(api.world, id)
    output.write(id, 'stdout', 'first\n')
    await expect.poll(() => run.stdout()).toBe('first\n')
    output.write(id, 'stdout', 'second\n', 2)
    place(api.world, id, 2)
    await expect.poll(() => run.stdout()).toBe('first\nsecond\n')
    finish(api.world, id, 0)
    expect(await run.ended).toMatchObject({ code: 0, stderr: 'headroom: the task starts again\n' })
  })

  it('cancels the task when the reader of its output disconnects', async () => {
    const run = start(['--vram', '1Gi', '--', 'x'])
    const id = await theTask(api.world)
    place(api.world, id)
    run.process.stdout?.destroy()
    output.write(id, 'stdout', Buffer.alloc(1_000_000))
    await expect.poll(() => api.world.final.map(({ state }) => state)).toEqual(['cancelled'])
    output.end(id)
    expect((await run.ended).code).toBe(141)
  })

  it('reports unreadable output once, and still returns the exit code', async () => {
    await api.close()
    api = await askedApi({ fleet: 'simulated' })
    await api.world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 49_140 })
    const run = start(['--vram', '1Gi', '--', 'x'])
    const id = await theTask(api.world)
    place(api.world, id)
    await expect.poll(() => run.stderr()).toContain('simulated')
    finish(api.world, id, 5)
    expect(await run.ended).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/^headroom: The fleet is simulated.*\n$/),
    })
  })
})

describe('invalid arguments of headroom run', { timeout: 300_000 }, () => {
  const vram = ['--vram', '1Gi']
  it.each([
    { why: 'no VRAM', args: ['--', 'x'], says: /--vram is required/ },
    {
      why: 'VRAM without a unit',
      args: ['--vram', '8', '--', 'x'],
      says: /--vram.*8Gi, 8192Mi, 8G or 8000M/,
    },
    { why: 'missing VRAM', args: ['--vram', '0Gi', '--', 'x'], says: /--vram.*from 1Mi to 16Ti/ },
    { why: 'no command', args: vram, says: /a command is required/ },
    { why: 'too many GPUs', args: [...vram, '--gpus', '1025', '--', 'x'], says: /--gpus.*from 1 to 1024/ },
    {
      why: 'a contradiction',
      args: [...vram, '--swap', '--noswap', '--', 'x'],
      says: /cannot be used together/,
    },
    { why: 'an invalid label', args: [...vram, '--label', 'x', '--', 'x'], says: /NAME=VALUE/ },
    { why: 'an invalid variable', args: [...vram, '--env', '1A=x', '--', 'x'], says: /--env: "1A"/ },
    {
      why: 'a submission that the controller refuses',
      args: [...vram, '--group', '-x', '--', 'x'],
      says: /groups\/0|groups/,
    },
  ])('$why', async ({ args, says }) => {
    const { code, stdout, stderr } = await ran(args)
    expect(stderr).toMatch(says)
    expect({ code, stdout, lines: stderr.trimEnd().split('\n').length }).toEqual({
      code: 2,
      stdout: '',
      lines: 1,
    })
    expect(api.world.open.size).toBe(0)
  })

  it('reports a variable out of range, and an address without a controller', async () => {
    const run = (env: Record<string, string>) => ran([...vram, '--', 'x'], env)
    expect(await run({ VENDOR_SWAP_FROM_VRAM: 'yes' })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('VENDOR_SWAP_FROM_VRAM'),
    })
    expect(await run({ CONTROLLER_NODE_GROUP_IDS: 'a,,b' })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('separated by commas'),
    })
    expect(await run({ PRIO: '5' })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('PRIO is "5"; it must be'),
    })
    expect(await run({ VENDOR_CONTROLLER_URL: 'x' })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('VENDOR_CONTROLLER_URL'),
    })
    expect(await run({ VENDOR_CONTROLLER_URL: await deadAddress() })).toMatchObject({ code: 3 })
  })
})
