import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AcceleratedTask } from '../../../gpu-server/devices/accelerator.ts'
import {
  NvidiaAccelerator,
  type NvidiaOptions,
} from '../../../gpu-server/devices/nvidia/nvidia-accelerator.ts'

export const STUB_UUID = (gpu: number): string => `GPU-0000000${gpu}-aaaa-bbbb-cccc-0123456789ab`

const SOURCES = import.meta.dirname
const STATES = ['running', 'locked', 'checkpointed', 'failed', 'checkpointing', 'restoring'] as const

export interface StubGpu {
  readonly totalMib: number
  readonly reservedMib?: number
  /** Not a pid of any process that the driver lists. */
  readonly baseMib?: number
  readonly utilization?: number
  /** -1 if this GPU does not support the mode. */
  readonly mig?: -1 | 0 | 1
  readonly name?: string
}

export interface StubProcess {
  readonly state?: (typeof STATES)[number]
  readonly kind?: 'c' | 'g' | 'm'
  readonly utilization?: number
  /** By GPU; -1 if the driver does not report it. */
  readonly mib: readonly number[]
  /** Its entry in /proc, or null if it runs in another namespace. */
  readonly proc?: {
    readonly maps?: string
    readonly nested?: readonly number[]
    readonly isStopped?: boolean
    readonly cgroup?: string
  } | null
}

/**
 * A stub NVIDIA driver: libraries compiled into a temporary folder, whose state is files in it (see
 * stub-state.h), and a /proc with the processes of that state.
 */
export class StubDriver {
  readonly folder = mkdtempSync(join(tmpdir(), 'headroom-nvidia-'))
  readonly state = join(this.folder, 'state')
  readonly files = { proc: join(this.folder, 'proc'), cgroup: join(this.folder, 'cgroup') }
  readonly nvmlLibrary: string
  readonly cudaLibrary: string
  readonly notes: string[] = []
  #started = 0

  constructor() {
    this.reset()
    this.nvmlLibrary = this.compile('nvml.c', 'libnvidia-ml.so.1')
    this.cudaLibrary = this.compile('cuda.c', 'libcuda.so.1')
  }

  /** One GPU of 1,000 MiB, driver 570, no process, 100,000 MiB of host memory. */
  reset(): void {
    for (const folder of [this.state, ...Object.values(this.files)]) {
      rmSync(folder, { recursive: true, force: true })
      mkdirSync(folder)
    }
    this.notes.length = 0
    this.write('driver', '570.86.15')
    this.gpu(0, { totalMib: 1000 })
    this.hostMemory(100_000)
    mkdirSync(join(this.files.proc, 'sys/kernel/random'), { recursive: true })
    writeFileSync(join(this.files.proc, 'sys/kernel/random/boot_id'), 'boot-1\n')
  }

  compile(source: string, library: string, ...flags: readonly string[]): string {
    const path = join(this.folder, library)
    const define = `-DSTUB_STATE="${this.state}"`
    execFileSync('cc', [
      '-Wall',
      '-Wextra',
      '-Werror',
      '-O1',
      '-fPIC',
      '-shared',
      '-pthread',
      define,
      ...flags,
      join(SOURCES, source),
      '-o',
      path,
    ])
    return path
  }

  gpu(index: number, gpu: StubGpu): void {
    const {
      totalMib,
      reservedMib = 0,
      baseMib = 0,
      utilization = 0,
      mig = 0,
      name = 'NVIDIA Stub 1000',
    } = gpu
    this.write(
      `gpu-${index}`,
      `${totalMib} ${reservedMib} ${baseMib} ${utilization} ${mig} ${STUB_UUID(index)} ${name}`,
    )
  }

  process(pid: number, process: StubProcess): void {
    const { state = 'running', kind = 'c', utilization = 0, mib, proc = {} } = process
    this.write(`process-${pid}`, `${STATES.indexOf(state)} ${kind} ${utilization} ${mib.join(' ')}`)
    if (proc === null) return
    this.kernelProcess(pid, {
      maps: '7f0000000000-7f0000001000 r-xp 00000000 00:00 0 /usr/lib/libcuda.so.1',
      ...proc,
    })
  }

  /** A process without CUDA. */
  kernelProcess(
    pid: number,
    { maps = '', nested = [], isStopped = false, cgroup = '' }: NonNullable<StubProcess['proc']>,
  ): void {
    const folder = join(this.files.proc, String(pid))
    mkdirSync(folder, { recursive: true })
    writeFileSync(
      join(folder, 'status'),
      `Name:\tstub\nState:\t${isStopped ? 'T (stopped)' : 'S (sleeping)'}\n` +
        `NSpid:\t${[pid, ...nested].join('\t')}\n`,
    )
    writeFileSync(join(folder, 'maps'), `${maps}\n`)
    writeFileSync(join(folder, 'stat'), `${pid} (stub) S${' 0'.repeat(18)} ${++this.#started}\n`)
    writeFileSync(join(folder, 'cgroup'), cgroup)
  }

  end(pid: number): void {
    rmSync(join(this.state, `process-${pid}`), { force: true })
    rmSync(join(this.files.proc, String(pid)), { recursive: true, force: true })
  }

  /** The contents of its memory on a GPU, which swaps move. */
  contents(pid: number, gpu = 0): Buffer {
    return readFileSync(join(this.state, `vram-${pid}-${gpu}`))
  }

  fill(pid: number, bytes: Buffer, gpu = 0): void {
    writeFileSync(join(this.state, `vram-${pid}-${gpu}`), bytes)
  }

  stateOf(pid: number): string | undefined {
    return STATES[Number(readFileSync(join(this.state, `process-${pid}`), 'utf8').split(' ')[0])]
  }

  hostMemory(availableMib: number): void {
    writeFileSync(
      join(this.files.proc, 'meminfo'),
      `MemTotal:       999999999 kB\nMemAvailable:   ${availableMib * 1024} kB\n`,
    )
  }

  /** Until it is removed: `code N`, `hang`, `crash`, `once N` or `once crash` (the next call), or `wait`. */
  rule(name: string, rule: string): void {
    this.write(`rule-${name}`, rule)
  }

  withoutRule(name: string): void {
    rmSync(join(this.state, `rule-${name}`), { force: true })
  }

  /** For example `lock 17`, in order of arrival. */
  calls(): string[] {
    const path = join(this.state, 'calls')
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []
  }

  /** The calls that move data. */
  actions(): string[] {
    return this.calls().filter((call) => /^(lock|checkpoint|restore|unlock) /.test(call))
  }

  accelerator(options: NvidiaOptions = {}): NvidiaAccelerator {
    return new NvidiaAccelerator({
      nvmlLibrary: this.nvmlLibrary,
      cudaLibrary: this.cudaLibrary,
      smiProgram: join(this.folder, 'no-nvidia-smi'),
      files: this.files,
      onNote: (line) => this.notes.push(line),
      ...options,
    })
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  write(name: string, text: string): void {
    const fresh = join(this.state, `written-${name}`)
    writeFileSync(fresh, text)
    renameSync(fresh, join(this.state, name))
  }
}

export interface StubTask extends AcceleratedTask {
  pids: readonly number[]
  /** Requested `suspend` and `resume` calls. */
  readonly signals: string[]
}

export function stubTask(
  pids: readonly number[],
  fields: Partial<Pick<AcceleratedTask, 'taskId' | 'gpus' | 'vramMib'>> = {},
): StubTask {
  const signals: string[] = []
  const signal = (name: string) => (): Promise<void> => {
    signals.push(name)
    return Promise.resolve()
  }
  return {
    taskId: 'task-1',
    attempt: 1,
    gpus: [0],
    vramMib: 400,
    ...fields,
    pids,
    processIds() {
      return this.pids
    },
    suspend: signal('suspend'),
    resume: signal('resume'),
    signals,
  }
}
