/** What `make bench-proxy` measures: a task behind its proxy, the same behind nginx, and the load. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { bootTime } from '../../../gpu-server/guard/boot-time.ts'
import { guardProgram } from '../../../gpu-server/guard/guard-program.ts'
import { openGuards } from '../../../gpu-server/guard/local-guards.ts'
import { startProxy } from '../../../gpu-server/guard/start-proxy.ts'
import { freePort } from '../../support/free-port.ts'

const LEASE_MS = 3_600_000
const STREAM_MODULE = '/usr/lib/nginx/modules/ngx_stream_module.so'

/** Runs one measurement to its end; returns the numbers that it printed. */
export type Load = (...args: readonly (string | number)[]) => readonly number[]

export interface Bench {
  readonly folder: string
  readonly program: string
  readonly load: Load
  /** Starts a task with the load's server; returns its port and that of its proxy. */
  task(id: string, isOut?: boolean): Promise<{ readonly port: number; readonly proxy: number }>
  /** MiB of resident memory of all proxies together. */
  proxiesMib(): number
  close(): Promise<void>
}

export async function openBench(): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-bench-proxy-'))
  const program = join(folder, 'load')
  const built = spawnSync('cc', ['-std=c11', '-O2', '-o', program, join(import.meta.dirname, 'load.c')])
  if (built.status !== 0) throw new Error(`the load cannot be built: ${built.stderr}`)
  const guard = await guardProgram()
  const endedOutputs = { maxTasks: 100, maxBytes: 1 << 20 }
  const onFault = (fault: Error): void => console.error(fault.message)
  const guards = await openGuards({ folder, program: guard, isIsolated: true, endedOutputs, onFault })
  guards.lease(bootTime() + LEASE_MS, LEASE_MS)
  const ids: string[] = []
  return {
    folder,
    program,
    load: (...args) => {
      const run = spawnSync(program, args.map(String), { encoding: 'utf8' })
      if (run.status !== 0) throw new Error(`load ${args.join(' ')}: ${run.stderr}`)
      return run.stdout.trim().split(' ').map(Number)
    },
    async task(id, isOut = false) {
      const port = await freePort()
      const spec = { env: {}, workingDirectory: '/', user: null, isLeased: false, maxOutputBytes: 1 << 16 }
      const command = [program, 'serve', String(port)]
      const launched = await guards.launch({ taskId: id, attempt: 1, record: {}, command, ...spec })
      if (launched.error !== null) throw new Error(launched.error)
      ids.push(id)
      await listens(port)
      const ports = await startProxy({
        ...{ program: guard, folder: guards.folderOf(id, 1) ?? '', address: '127.0.0.1' },
        ...{ ports: { from: 20_000, to: 29_999 }, next: 20_000 + ids.length * 7, isOut },
        ...{ targets: [{ target: port, protocol: 'tcp' }], holdMs: 60_000, maxHeld: 100 },
      })
      if ('error' in ports) throw new Error(ports.error)
      return { port, proxy: ports[0] ?? 0 }
    },
    proxiesMib: () => residentMib((command) => command.includes(`--proxy\0${folder}/`)),
    async close() {
      for (const id of ids) guards.kill(id, 1)
      await delay(500)
      guards.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Null: the Debian packages nginx-light and libnginx-mod-stream are not installed. */
export async function startNginx(
  folder: string,
  target: number,
): Promise<{ port: number; process: ChildProcess } | null> {
  if (!existsSync(STREAM_MODULE) || spawnSync('nginx', ['-v']).status !== 0) return null
  const port = await freePort()
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `load_module ${STREAM_MODULE};\ndaemon off; master_process off; worker_rlimit_nofile 20000;\n` +
      `pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;\nevents { worker_connections 8000; }\n` +
      `stream { server { listen 127.0.0.1:${port}; tcp_nodelay on; proxy_pass 127.0.0.1:${target}; } }\n`,
  )
  const process = spawn('nginx', ['-c', file, '-e', `${folder}/nginx.log`], { stdio: 'ignore' })
  await listens(port)
  return { port, process }
}

/** Opens connections that send and wait; ends them when its result is called. */
export async function holdAt(program: string, port: number, count: number): Promise<() => void> {
  const child = spawn(program, ['hold', String(port), String(count)], { stdio: ['pipe', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  return () => child.stdin.end()
}

async function listens(port: number): Promise<void> {
  for (let tried = 0; tried < 500; tried++) {
    const socket = connect(port, '127.0.0.1')
    const isThere = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isThere) return
    await delay(10)
  }
  throw new Error(`nothing listens on port ${port}`)
}

function residentMib(isCounted: (command: string) => boolean): number {
  const pids = spawnSync('ls', ['/proc'], { encoding: 'utf8' })
    .stdout.split('\n')
    .filter((name) => /^\d+$/.test(name))
  let kib = 0
  for (const pid of pids) {
    try {
      if (!isCounted(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))) continue
      kib += Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)
    } catch {
      // It has ended.
    }
  }
  return kib / 1024
}
