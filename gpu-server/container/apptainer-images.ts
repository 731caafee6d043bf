/** Images of apptainer: one file for each reference, in the state folder of the server. */
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { fullNameOf } from '../../protocol/image-reference.ts'
import { partsOf } from './engine-api.ts'
import type { Login } from './registry-credentials.ts'

/** The words of the command that failed. */
export class ApptainerFault extends Error {
  override readonly name = 'ApptainerFault'
}

/** Limit for all images together; the least recently used images are removed first. */
const MAX_BYTES = 100 * 1024 ** 3
/** Time limit of a pull. The command does not report progress in bytes. */
const PULL_MS = 3_600_000
const MAX_WORDS = 4_096
const SUFFIX = '.sif'
const DIGEST = /@(sha256:[0-9a-f]{64})$/

export interface ApptainerImagesOptions {
  readonly program: string
  readonly folder: string
  readonly maxBytes?: number
  readonly pullMs?: number
}

export class ApptainerImages {
  readonly #options: ApptainerImagesOptions
  readonly #images: string
  readonly #scratch: string
  /** Pulls of the same image follow each other: the second one finds it. */
  readonly #pulls = new Map<string, Promise<void>>()

  constructor(options: ApptainerImagesOptions) {
    this.#options = options
    this.#images = join(options.folder, 'images')
    this.#scratch = join(options.folder, 'scratch')
  }

  /** Removes what an interrupted pull has left. */
  async open(): Promise<void> {
    await rm(this.#scratch, { recursive: true, force: true })
    await mkdir(this.#images, { recursive: true, mode: 0o700 })
    await mkdir(this.#scratch, { recursive: true, mode: 0o700 })
  }

  /** The file of the image, which is now its last use; null: it is not here. */
  async find(image: string): Promise<string | null> {
    const file = this.#fileOf(image)
    const now = new Date()
    return utimes(file, now, now).then(
      () => file,
      () => null,
    )
  }

  has(image: string): boolean {
    return existsSync(this.#fileOf(image))
  }

  /**
   * @param isOld the image that is here is not good enough
   * @throws ApptainerFault with the words of the command
   */
  async pull(image: string, login: Login | null, signal: AbortSignal, isOld: boolean): Promise<void> {
    const file = this.#fileOf(image)
    const before = this.#pulls.get(file)
    if (before !== undefined) {
      await before.catch(() => {})
      if (signal.aborted || (!isOld && this.has(image))) return
    }
    const pulling = this.#pull(image, file, login, signal)
    this.#pulls.set(file, pulling)
    try {
      await pulling
    } finally {
      if (this.#pulls.get(file) === pulling) this.#pulls.delete(file)
    }
  }

  /** Containers keep a removed file open until they end. */
  async prune(): Promise<void> {
    const names = (await readdir(this.#images)).filter((name) => name.endsWith(SUFFIX))
    const files = await Promise.all(
      names.map(async (name) => {
        const path = join(this.#images, name)
        const { size, mtimeMs } = await stat(path)
        return { path, size, mtimeMs }
      }),
    )
    // 1. last use, latest first; 2. path
    files.sort((a, b) => b.mtimeMs - a.mtimeMs || (a.path < b.path ? -1 : 1))
    let bytes = 0
    for (const [i, { path, size }] of files.entries()) {
      bytes += size
      if (i > 0 && bytes > (this.#options.maxBytes ?? MAX_BYTES)) await rm(path, { force: true })
    }
  }

  async #pull(image: string, file: string, login: Login | null, signal: AbortSignal): Promise<void> {
    const folder = join(this.#scratch, randomBytes(8).toString('hex'))
    await mkdir(folder, { mode: 0o700 })
    try {
      const made = join(folder, 'image.sif')
      const arguments_ = ['--silent', 'pull', '--disable-cache', made, sourceOf(image)]
      const { program, pullMs = PULL_MS } = this.#options
      const limit = AbortSignal.any([signal, AbortSignal.timeout(pullMs)])
      await runApptainer(program, arguments_, pullEnvironment(folder, login), limit)
      await rename(made, file)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
    await this.prune()
  }

  #fileOf(image: string): string {
    const key = createHash('sha256').update(sourceOf(image)).digest('hex')
    return join(this.#images, `${key}${SUFFIX}`)
  }
}

/**
 * Returns the digest of the image in its registry; null for a tag, because apptainer does not report its
 * digest.
 */
export function digestIn(image: string): string | null {
  return DIGEST.exec(image)?.[1] ?? null
}

/** Runs the command to its end. Rejects with ApptainerFault, or with the error of the start. */
export function runApptainer(
  program: string,
  arguments_: readonly string[],
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, arguments_, { env, cwd: '/', stdio: ['ignore', 'pipe', 'pipe'], signal })
    const output = wordsFrom(child.stdout)
    const errors = wordsFrom(child.stderr)
    child.once('error', (error) => {
      if (error.name === 'AbortError') return // 'close' follows
      reject(error)
    })
    child.once('close', (code) => {
      if (code === 0) resolve(output())
      else reject(new ApptainerFault(signal.aborted ? STOPPED : lastLine(errors())))
    })
  })
}

/** The words of a registry that does not answer. */
const STOPPED = 'connection timed out'

/** Collects the end of a stream. */
export function wordsFrom(stream: NodeJS.ReadableStream): () => string {
  let text = ''
  stream.setEncoding('utf8')
  stream.on('data', (more: string) => (text = (text + more).slice(-MAX_WORDS)))
  return () => text
}

/** Returns the last line, such as `FATAL: While making image …`. An image may have written it. */
export function lastLine(text: string): string {
  const lines = text.split('\n').map((line) => line.replace(/[\p{Cc}\s]+/gu, ' ').trim())
  const line =
    lines.findLast((each) => each.startsWith('FATAL')) ?? lines.findLast((each) => each !== '') ?? ''
  return line.replace(/^(FATAL|ERROR): */, '').slice(0, 300) || 'apptainer failed without a message'
}

/** Only the variables that it needs: others of the server could mount folders or add privileges. */
export function baseEnvironment(folder: string): Readonly<Record<string, string>> {
  return {
    PATH: process.env['PATH'] ?? '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: folder,
    APPTAINER_CONFIGDIR: join(folder, 'config'),
    APPTAINER_CACHEDIR: join(folder, 'cache'),
    APPTAINER_TMPDIR: folder,
  }
}

/** Passes the login in the environment, which only root and the server's own user can read. */
function pullEnvironment(folder: string, login: Login | null): Readonly<Record<string, string>> {
  if (login === null) return baseEnvironment(folder)
  const { username, password } = login
  return {
    ...baseEnvironment(folder),
    APPTAINER_DOCKER_USERNAME: username,
    APPTAINER_DOCKER_PASSWORD: password,
  }
}

/** A name with a tag and a digest is not accepted there. */
function sourceOf(image: string): string {
  const { tag } = partsOf(image)
  return `docker://${fullNameOf(image)}${tag.startsWith('sha256:') ? '@' : ':'}${tag}`
}
