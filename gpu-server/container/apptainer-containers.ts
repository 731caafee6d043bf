/**
 * Containers of tasks as processes of apptainer, which has no service. A container is a command that runs as
 * long as its init. An init without a guard ends by itself, so that a server that ends at any point leaves no
 * program.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type {
  Containers,
  ContainerStart,
  PreparedImage,
  PrepareOptions,
  Refused,
} from '../guard/containers.ts'
import { NO_CONTAINER, NO_RUNTIME } from '../guard/launch-refusal.ts'
import { descendantsOf, isAlive, startTimeOf, type ProcessKey } from '../guard/process-table.ts'
import { execArguments, execEnvironment, type Apptainer } from './apptainer-command.ts'
import {
  ApptainerFault,
  ApptainerImages,
  baseEnvironment,
  digestIn,
  lastLine,
  wordsFrom,
} from './apptainer-images.ts'
import { ContainerRemovals } from './container-removals.ts'
import type { PullPolicy } from './engine-containers.ts'
import { imageMissing, pullRefusal } from './pull-refusal.ts'
import { findLogin } from './registry-credentials.ts'
import { errorText } from '../../protocol/error-text.ts'

export interface ApptainerContainersOptions {
  readonly apptainer: Apptainer
  /** Folder of this server only. It contains the images and one file for each container. */
  readonly stateFolder: string
  readonly pull: PullPolicy
  /** File with logins for registries; absent: none. */
  readonly credentials?: string | null
  readonly onNote: (line: string) => void
  /** Time for apptainer to end after its container, before it is killed. */
  readonly endMs?: number
}

const NAME = /^headroom-[0-9a-f]{12}$/
/** Time limit until the init has reached its guard. The image is mounted first. */
const START_MS = 120_000
const END_MS = 10_000
const LOOK_MS = 25

export class ApptainerContainers implements Containers {
  readonly #options: ApptainerContainersOptions
  readonly #folder: string
  readonly #records: string
  readonly #images: ApptainerImages
  readonly #removals: ContainerRemovals

  private constructor(options: ApptainerContainersOptions) {
    this.#options = options
    this.#folder = join(options.stateFolder, 'apptainer')
    this.#records = join(this.#folder, 'containers')
    this.#images = new ApptainerImages({ program: options.apptainer.program, folder: this.#folder })
    this.#removals = new ContainerRemovals({
      remove: (name) => this.#remove(name),
      names: async () => (await readdir(this.#records)).filter((name) => NAME.test(name)),
      onNote: options.onNote,
    })
  }

  /** Rejects with the file system's error when the folder cannot be used. */
  static async open(options: ApptainerContainersOptions): Promise<ApptainerContainers> {
    const opened = new ApptainerContainers(options)
    await mkdir(opened.#records, { recursive: true, mode: 0o700 })
    await opened.#images.open()
    return opened
  }

  get canLimit(): boolean {
    return this.#options.apptainer.isRoot
  }

  async prepare(image: string, options: PrepareOptions): Promise<PreparedImage | Refused> {
    const { pull, credentials = null } = this.#options
    const isOld = pull === 'always' && options.isPrepared !== true
    try {
      const before = isOld ? null : await this.#images.find(image)
      if (before === null && pull === 'never') return imageMissing(`image ${image}: not found on this host`)
      if (before === null) {
        const login = credentials === null ? null : (findLogin(image, credentials)?.[1] ?? null)
        await this.#images.pull(image, login, options.signal, isOld)
      }
      const imageId = before ?? (await this.#images.find(image))
      if (imageId === null)
        return imageMissing(`image ${image}: apptainer pulled it, but it was not found afterwards`)
      return { error: null, imageId, workingDirectory: '/', digest: digestIn(image) }
    } catch (error) {
      if (error instanceof ApptainerFault) return pullRefusal(image, error.message)
      return { error: errorText(error), refused: NO_RUNTIME }
    }
  }

  imagesHere(images: readonly string[]): Promise<readonly string[]> {
    const isOld = this.#options.pull === 'always'
    return Promise.resolve(isOld ? [] : images.filter((image) => this.#images.has(image)))
  }

  /** Resolves once the init has reached its guard, which then removes the socket. */
  async start(start: ContainerStart): Promise<{ readonly error: null } | Refused> {
    const { apptainer } = this.#options
    const child = spawn(apptainer.program, execArguments(apptainer, start), {
      detached: true,
      cwd: '/',
      env: { ...baseEnvironment(this.#folder), ...execEnvironment(start) },
      // Nothing of an image may fill a file here: what it writes is read, and only its end is kept.
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const words = wordsFrom(child.stderr)
    try {
      await spawned(child)
      await this.#record(start.name, child.pid ?? 0)
    } catch (error) {
      child.kill('SIGKILL')
      return { error: errorText(error), refused: NO_RUNTIME }
    }
    const until = performance.now() + START_MS
    while (existsSync(start.socket) && child.exitCode === null && child.signalCode === null) {
      if (performance.now() > until) break
      await delay(LOOK_MS)
    }
    child.unref()
    if (!existsSync(start.socket)) return { error: null }
    await this.#kill(start.name)
    return { error: `container: ${lastLine(words())}`, refused: NO_CONTAINER }
  }

  remove(name: string): Promise<void> {
    return this.#removals.remove(name)
  }

  removeOthers(isNeeded: (name: string) => boolean): void {
    this.#removals.removeOthers(isNeeded)
  }

  close(): void {
    this.#removals.close()
  }

  /** Apptainer unmounts the image and removes its cgroup after the container. */
  async #remove(name: string): Promise<void> {
    const key = await this.#keyOf(name)
    const until = performance.now() + (this.#options.endMs ?? END_MS)
    while (key !== null && isAlive(key) && performance.now() < until) await delay(LOOK_MS)
    await this.#kill(name)
  }

  /** Its container dies with it; nothing is killed whose pid another process has now. */
  async #kill(name: string): Promise<void> {
    const key = await this.#keyOf(name)
    if (key !== null && isAlive(key)) {
      const pids = [key.pid, ...descendantsOf(key.pid)]
      if (isAlive(key)) for (const pid of pids) killQuietly(pid)
      await delay(LOOK_MS)
      if (isAlive(key)) throw new Error(`process ${key.pid} of apptainer cannot be killed`)
    }
    await rm(join(this.#records, name), { force: true })
  }

  async #record(name: string, pid: number): Promise<void> {
    if (!NAME.test(name)) throw new Error(`container name ${name.slice(0, 40)}: not created by this server`)
    await writeFile(join(this.#records, name), `${pid} ${startTimeOf(pid) ?? 0}\n`, { mode: 0o600 })
  }

  async #keyOf(name: string): Promise<ProcessKey | null> {
    const text = await readFile(join(this.#records, name), 'utf8').catch(() => '')
    const [, pid, startTime] = /^(\d+) (\d+)\n$/.exec(text) ?? []
    return pid === undefined ? null : { pid: Number(pid), startTime: Number(startTime) }
  }
}

function spawned(child: ChildProcessByStdio<null, null, Readable>): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}
