import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { until } from '../support/live-cluster.ts'
import { startNatsServer, whyNoNatsServer } from '../support/nats-server.ts'
import type { NatsServer } from '../support/nats-server.ts'
import { OneNodeController } from '../support/one-node-controller.ts'
import { startHeadroom } from '../support/running-command.ts'
import type { RunningCommand } from '../support/running-command.ts'
import { taskIdentity } from '../support/task-identity.ts'

/** Swaps take 0.1 s plus one millisecond per MiB. */
const INVENTORY = `
gpus:
  - model: declared
    vram_mib: 8Gi
    swap: { out_mib_per_s: 100000, in_mib_per_s: 100000, out_fixed_ms: 20, in_fixed_ms: 20 }
`
const WITHIN_MS = 60_000

describe.skipIf(whyNoNatsServer() !== null)(
  'a GPU server of processes, over a broker',
  { timeout: WITHIN_MS },
  () => {
    let broker: NatsServer
    let folder: string
    let controller: OneNodeController
    let servers: RunningCommand[] = []

    beforeAll(async () => {
      broker = await startNatsServer()
    })
    afterAll(() => broker.kill())

    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'headroom-server-'))
      writeFileSync(join(folder, 'gpus.yaml'), INVENTORY)
      // Tasks write to it, each as a separate user.
      chmodSync(folder, 0o777)
      controller = new OneNodeController(broker.url)
    })

    afterEach(async () => {
      for (const pid of pidsOf(folder)) kill(pid)
      for (const server of servers) server.process.kill('SIGKILL')
      await Promise.all(servers.map((server) => server.ended))
      for (const pid of pidsOf(folder)) kill(pid)
      await controller.bus.close()
      await until('every process is gone', () => pidsOf(folder).length === 0)
      rmSync(folder, { recursive: true, force: true })
      servers = []
    })

    function start(...options: readonly string[]): RunningCommand {
      const args = [
        'gpu-server',
        '--device',
        'process',
        '--inventory',
        join(folder, 'gpus.yaml'),
        ...taskIdentity(),
        ...options,
      ]
      const env = {
        CONTROLLER_NATS_URL: broker.url,
        NODE_NAME: 'alpha',
        NODE_STATE_DIR: join(folder, 'state'),
        LOG_LEVEL: 'info',
      }
      const server = startHeadroom(args, env)
      servers.push(server)
      return server
    }

    /** A task that writes its process id, then waits without end. */
    function waiting(name: string): readonly string[] {
      return ['sh', '-c', `echo $$ > ${join(folder, name)}.pid; echo it runs; exec sleep 1000`]
    }

    async function pidOf(name: string): Promise<number> {
      const file = join(folder, `${name}.pid`)
      await until(`${name} runs`, () => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n'))
      return hostPid(folder, Number(readFileSync(file, 'utf8')), name)
    }

    it('runs a task, stops it while swapped out, resumes it, and reports its end', async () => {
      start('--allow-exec')
      const hello = await controller.hello(1)
      expect(hello).toMatchObject({
        name: 'alpha',
        device: 'process',
        allow_exec: true,
        host_swap_mib: 16_384,
      })
      expect(hello.gpus).toEqual([{ index: 0, model: 'declared', physical_mib: 8_192, foreign_mib: 0 }])
      expect(await controller.start('a', waiting('a'))).toMatchObject({ outcome: 'accepted' })
      await controller.event('a', 'started')
      const pid = await pidOf('a')
      expect(await controller.swap('swap_out', 'a', 1)).toMatchObject({ outcome: 'accepted' })
      await controller.event(
        'a',
        'residency',
        (event) => event.kind === 'residency' && event.residency === 'swapped_out',
      )
      expect(stateOf(pid)).toBe('T')
      await controller.swap('swap_in', 'a', 2)
      await controller.event(
        'a',
        'residency',
        (event) => event.kind === 'residency' && event.residency === 'resident',
      )
      await until('it runs again', () => stateOf(pid) === 'S')
      const log = await controller.readLog('a')
      expect(log).toMatchObject({
        op: 'log',
        offset: 0,
        is_ended: false,
        data: Buffer.from('it runs\n').toString('base64'),
      })
      expect(await controller.readLog('absent')).toBe('unknown_attempt')

      await controller.start('b', ['sh', '-c', 'exit 7'])
      expect(await controller.event('b', 'finished')).toMatchObject({ outcome: 'failed', exit_code: 7 })
      await controller.start('c', ['sh', '-c', 'kill -SEGV $$'])
      expect(await controller.event('c', 'finished')).toMatchObject({
        outcome: 'failed',
        exit_code: 139,
        detail: 'signal SIGSEGV',
      })
      await controller.start('d', ['/no/such/program'])
      expect(await controller.event('d', 'finished')).toMatchObject({ outcome: 'failed', exit_code: null })
      await controller.stop('a')
      expect(await controller.event('a', 'finished')).toMatchObject({ outcome: 'stopped' })
      expect(stateOf(pid)).toBe('gone')
    })

    it("makes Python write without buffering, unless the task's environment says otherwise", async () => {
      start('--allow-exec')
      await controller.hello(1)
      const written = async (name: string, command: readonly string[]): Promise<string> => {
        await controller.start(name, command)
        await controller.event(name, 'finished')
        return Buffer.from(
          ((await controller.readLog(name)) as { readonly data: string }).data,
          'base64',
        ).toString()
      }
      expect(await written('a', ['sh', '-c', 'echo "is $PYTHONUNBUFFERED"'])).toBe('is 1\n')
      expect(
        await written('b', ['env', 'PYTHONUNBUFFERED=', 'sh', '-c', 'echo "is $PYTHONUNBUFFERED"']),
      ).toBe('is \n')
    })

    it('finds its tasks after a kill: running, swapped out, and ended meanwhile', async () => {
      const first = start('--allow-exec')
      await controller.hello(1)
      for (const name of ['stays', 'out', 'ends']) {
        await controller.start(name, waiting(name))
        await controller.event(name, 'started')
      }
      await controller.start('lease', null)
      await controller.event('lease', 'started')
      const [stays, out, ends] = [await pidOf('stays'), await pidOf('out'), await pidOf('ends')]
      await controller.swap('swap_out', 'out', 1)
      await controller.event('out', 'residency')
      first.process.kill('SIGKILL')
      await first.ended
      expect([stateOf(stays), stateOf(out)]).toEqual(['S', 'T'])
      process.kill(ends, 'SIGTERM')
      await until('it has ended', () => stateOf(ends) === 'gone')

      start('--allow-exec')
      const hello = await controller.hello(2)
      const places = hello.tasks.map(({ task_id, residency }) => `${task_id} ${residency}`)
      expect(places.toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
        'lease resident',
        'out swapped_out',
        'stays resident',
      ])
      expect(hello.finished_unacked).toEqual([{ task_id: 'ends', attempt: 1 }])
      expect(await controller.event('ends', 'finished')).toMatchObject({
        outcome: 'failed',
        exit_code: 143,
        detail: 'signal SIGTERM',
      })
      expect([stateOf(stays), stateOf(out)]).toEqual(['S', 'T'])
      expect(await controller.start('stays', waiting('stays'))).toMatchObject({ outcome: 'running' })
      const generation = hello.tasks.find(({ task_id }) => task_id === 'out')?.generation ?? 0
      expect(await controller.swap('swap_in', 'out', generation)).toMatchObject({ outcome: 'accepted' })
      await until('it runs again', () => stateOf(out) === 'S')
    })

    async function impatientAndPatient(): Promise<readonly [impatient: number, patient: number]> {
      await controller.start('fails', waiting('fails'), { onNodeLoss: 'fail' })
      await controller.start('waits', waiting('waits'))
      await controller.event('fails', 'started')
      await controller.event('waits', 'started')
      return [await pidOf('fails'), await pidOf('waits')]
    }

    it('killed for longer than its lease: fail tasks are suspended until it is answered again', async () => {
      controller.runLeaseMs = 6_000
      const first = start('--allow-exec')
      await controller.hello(1)
      const [fails, waits] = await impatientAndPatient()
      first.process.kill('SIGKILL')
      await until('its lease has ended', () => stateOf(fails) === 'T')
      expect(stateOf(waits)).toBe('S')
      controller.isTalking = false
      start('--allow-exec')
      await controller.hello(2)
      expect(stateOf(fails)).toBe('T')
      controller.isTalking = true
      await until('it runs again', () => stateOf(fails) === 'S')
      expect(stateOf(waits)).toBe('S')
    })

    it('stopped for longer than its lease: guards enforce it, and tasks resume afterwards', async () => {
      controller.runLeaseMs = 6_000
      const server = start('--allow-exec')
      await controller.hello(1)
      const [fails, waits] = await impatientAndPatient()
      server.process.kill('SIGSTOP')
      await until('its lease has ended', () => stateOf(fails) === 'T')
      server.process.kill('SIGCONT')
      await until('it runs again', () => stateOf(fails) === 'S')
      expect(stateOf(waits)).toBe('S')
      expect(controller.events.filter(({ kind }) => kind === 'finished')).toEqual([])
    })

    it('without its controller for two leases ends fail tasks because of the lease', async () => {
      controller.runLeaseMs = 3_000
      const first = start('--allow-exec')
      await controller.hello(1)
      const [fails, waits] = await impatientAndPatient()
      first.process.kill('SIGKILL')
      await until('it is ended', () => stateOf(fails) === 'gone')
      start('--allow-exec')
      expect(await controller.event('fails', 'finished')).toMatchObject({ outcome: 'lease_ended' })
      expect(stateOf(waits)).toBe('S')
    })

    it('accepts messages of tasks on their socket', async () => {
      start('--allow-exec')
      await controller.hello(1)
      await controller.start('a', [
        'sh',
        '-c',
        `echo $HEADROOM_SOCKET > ${join(folder, 'a.socket')}; exec sleep 1000`,
      ])
      await controller.event('a', 'started')
      const file = join(folder, 'a.socket')
      await until('it has said where', () => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n'))
      const socket = createConnection(readFileSync(file, 'utf8').trim())
      let said = ''
      socket.on('data', (bytes) => (said += bytes.toString()))
      socket.write('{"busy":false}\n')
      await controller.event('a', 'gpu_used')
      socket.write('{"want":true}\n')
      await controller.event('a', 'gpu_wanted')
      socket.write('{"allocate_mib":3000}\n')
      expect(await controller.event('a', 'allocation_wanted')).toMatchObject({ mib: 3_000 })
      await controller.command({ op: 'grant', task_id: 'a', attempt: 1, mib: 3_000, noswap: 0, reason: null })
      await until('it is granted', () => said.includes('"granted":true'))
      socket.destroy()
    })

    it('refuses commands unless they are enabled', async () => {
      start()
      expect(await controller.hello(1)).toMatchObject({ allow_exec: false })
      expect(await controller.start('a', ['true'])).toMatchObject({
        outcome: 'refused',
        reason: 'exec_not_allowed',
      })
      expect(await controller.start('b', null)).toMatchObject({ outcome: 'accepted' })
      expect(await controller.event('b', 'started')).toMatchObject({ wants_gpu: false })
      const swapOut = {
        op: 'swap_out',
        task_id: 'b',
        attempt: 1,
        generation: 1,
        force_active: false,
      } as const
      expect(await controller.command(swapOut)).toMatchObject({ outcome: 'accepted' })
      expect(await controller.event('b', 'residency')).toMatchObject({ residency: 'swapped_out' })
    })

    it('refuses a command of a container image: it has no runtime, and the host runs nothing', async () => {
      start('--allow-exec')
      expect(await controller.hello(1)).toMatchObject({
        features: ['env', 'attach', 'vram_limit', 'files', 'limits', 'prepare', 'swap_hooks', 'swap_engine'],
      })
      expect(await controller.start('a', waiting('a'), { image: 'docker.io/library/busybox' })).toMatchObject(
        {
          outcome: 'refused',
          reason: 'feature_missing',
          start_refused: { cause: 'host', code: 'no_container_runtime' },
        },
      )
      // A later task of the same server runs, so the refused one had time to.
      expect(await controller.start('b', waiting('b'))).toMatchObject({ outcome: 'accepted' })
      await pidOf('b')
      expect(existsSync(join(folder, 'a.pid'))).toBe(false)
    })

    it('refuses a state folder in use, and uses it once the other server has ended', async () => {
      const first = start()
      await controller.hello(1)
      const second = start()
      expect(await second.ended).toBe(1)
      expect(second.output()).toMatch(/^headroom: state folder \S+: another GPU server uses it$/m)
      first.process.kill('SIGKILL')
      await first.ended
      start()
      await controller.hello(2)
    })

    it.each([
      [[], 0, 'S', 'tasks keep running under their guards'],
      [['--stop-tasks'], 0, 'gone', 'its tasks have ended, and the controller has acknowledged it'],
    ])(
      'at SIGTERM with %j exits with %i, and its task is then %s',
      async (options, exitCode, state, says) => {
        const server = start('--allow-exec', ...options)
        await controller.hello(1)
        await controller.start('a', waiting('a'))
        await controller.event('a', 'started')
        const pid = await pidOf('a')
        server.process.kill('SIGTERM')
        expect(await server.ended).toBe(exitCode)
        expect(server.output()).toContain(says)
        expect(stateOf(pid)).toBe(state)
      },
    )
  },
)

describe('headroom gpu-server', { timeout: WITHIN_MS }, () => {
  it.each([
    [[], {}, /^error: no broker is configured: set CONTROLLER_NATS_URL[^\n]*\n$/],
    [
      ['--device', 'process'],
      { CONTROLLER_NATS_URL: 'nats://127.0.0.1:1' },
      /^error: --device process requires --inventory FILE[^\n]*\n$/,
    ],
    [['--device', 'tpu'], {}, /^error: option '--device <kind>'[^\n]*\n$/],
    [
      ['--inventory', '/no/such', '--device', 'process'],
      { CONTROLLER_NATS_URL: 'nats://127.0.0.1:1' },
      /^error: \/no\/such: cannot be read[^\n]*\n$/,
    ],
    [['--idle-after', 'soon'], {}, /^error: option '--idle-after <time>'[^\n]*\n$/],
    [
      ['--task-user', 'nobody-of-that-name'],
      { CONTROLLER_NATS_URL: 'nats://127.0.0.1:1' },
      /^error: --task-user: [^\n]*\n$/,
    ],
    [
      [],
      { CONTROLLER_NATS_URL: 'nats://127.0.0.1:1', NODE_ID: 'x' },
      /^NODE_ID is "x"; it must be a lowercase UUID\n$/,
    ],
  ])('%j with %j is refused in one line, exit code 2', async (args, env, says) => {
    const blank = { CONTROLLER_NATS_URL: '', NODE_STATE_DIR: '/no/such/folder/ever' }
    const command = startHeadroom(['gpu-server', ...args], { ...blank, ...env })
    expect(await command.ended).toBe(2)
    expect(command.output()).toMatch(says)
  })
})

/** Processes whose environment or command line names the folder: guards and tasks. */
function pidsOf(folder: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    const pid = Number(name)
    if (!Number.isInteger(pid) || pid === process.pid) return []
    try {
      const facts =
        readFileSync(`/proc/${pid}/environ`, 'latin1') + readFileSync(`/proc/${pid}/cmdline`, 'latin1')
      return facts.includes(folder) ? [pid] : []
    } catch {
      return []
    }
  })
}

/** A task in a separate PID namespace has another number there. */
function hostPid(folder: string, pid: number, name: string): number {
  const isIt = (each: number): boolean => {
    try {
      const status = readFileSync(`/proc/${each}/status`, 'utf8')
      const environ = readFileSync(`/proc/${each}/environ`, 'latin1')
      return (
        environ.includes(`HEADROOM_TASK_ID=${name}\0`) && new RegExp(`^NSpid:.*\\b${pid}$`, 'm').test(status)
      )
    } catch {
      return false
    }
  }
  const found = pidsOf(folder).find(isIt)
  if (found === undefined) throw new Error(`process ${pid} of ${name} is not to be found`)
  return found
}

function stateOf(pid: number): string {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const state = text.slice(text.lastIndexOf(')') + 2)[0] ?? 'gone'
    return state === 'Z' || state === 'X' ? 'gone' : state
  } catch {
    return 'gone'
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has already ended.
  }
}
