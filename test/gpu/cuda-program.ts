import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { AcceleratedTask } from '../../gpu-server/devices/accelerator.ts'

/** Compiles a program of this folder (`fill` for fill.c) into another folder; returns its path. */
export function compile(name: 'fill' | 'worker', folder: string): string {
  const program = join(folder, name)
  const source = join(import.meta.dirname, `${name}.c`)
  execFileSync('cc', ['-O2', '-Wall', '-Wextra', '-Werror', source, '-o', program, '-ldl', '-pthread'])
  return program
}

export interface CudaProgramSpec {
  readonly program: string
  readonly cudaLibrary: string
  readonly name: string
  readonly mib: number
  readonly environment: Readonly<Record<string, string>>
}

/** A running `fill`: a task of one process on GPU 0, whose memory has known contents. */
export class CudaProgram implements AcceleratedTask {
  readonly taskId: string
  readonly attempt = 1
  readonly gpus = [0]
  readonly vramMib: number
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  readonly #lines: AsyncIterator<string>
  readonly #reader: Interface
  #written = ''

  private constructor(spec: CudaProgramSpec) {
    this.taskId = spec.name
    this.vramMib = spec.mib
    const seed = String([...spec.name].reduce((sum, letter) => sum + letter.charCodeAt(0), 1))
    this.#child = spawn(spec.program, [String(spec.mib), seed, spec.cudaLibrary], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, ...spec.environment },
    })
    this.#reader = createInterface({ input: this.#child.stdout })
    this.#lines = this.#reader[Symbol.asyncIterator]()
  }

  /** Resolves when its memory is filled. */
  static async start(spec: CudaProgramSpec): Promise<CudaProgram> {
    const program = new CudaProgram(spec)
    program.#written = await program.#next('ready')
    return program
  }

  /** The contents of GPU memory are those that were written. */
  async isIntact(): Promise<boolean> {
    this.#child.stdin.write('sum\n')
    return (await this.#next('sum')) === this.#written
  }

  processIds(): readonly number[] {
    return this.#child.pid === undefined ? [] : [this.#child.pid]
  }

  suspend(): Promise<void> {
    this.#child.kill('SIGSTOP')
    return Promise.resolve()
  }

  resume(): Promise<void> {
    this.#child.kill('SIGCONT')
    return Promise.resolve()
  }

  async end(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill('SIGKILL')
      await once(this.#child, 'exit')
    }
    this.#reader.close()
  }

  async #next(word: string): Promise<string> {
    const { value, done } = (await this.#lines.next()) as IteratorResult<string, undefined>
    const [said, sum] = done === true ? [] : value.split(' ')
    if (said === word && sum !== undefined) return sum
    throw new Error(`${this.taskId} ended instead of printing ${word}`)
  }
}
