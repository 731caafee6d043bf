/** `headroom cp TASK:PATH TARGET`: copies a file or folder from the work folder of a task to this machine. */
import { lstatSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { FilePiece, HeadroomClient, WorkFile } from '../../clients/typescript/client.ts'
import { whyNoPath } from '../../protocol/manifest.ts'
import { CommandFailure, EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { openClient, type ServerOption } from '../command/session.ts'
import { taskNamed } from '../command/task-named.ts'
import { drained } from '../output/drained.ts'
import { StatusLine } from '../output/status-line.ts'
import { eachFile } from './artifacts.ts'
import { inParallel } from '../../services/in-parallel.ts'
import { FILES_AT_ONCE } from './upload-folder.ts'

/** Pieces of one file that are requested at the same time. */
const PIECES_AHEAD = 4
/** A file that a running task replaces is read again. */
const MAX_TRIES = 3

export async function copyFiles(from: string, target: string, server: ServerOption): Promise<number> {
  const at = from.indexOf(':')
  if (at < 1) throw new UsageError('the source must be TASK:PATH, for example train:out/model.pt')
  const path = from
    .slice(at + 1)
    .replace(/^(\.\/+)+|\/+$/g, '')
    .replace(/^\.$/, '')
  const client = openClient(server, { attempts: 3 })
  const id = await taskNamed(client, from.slice(0, at))
  const files: WorkFile[] = []
  for await (const file of eachFile(client, id, path)) files.push(file)
  const copy = new Copy(client, id)
  const [only] = files
  if (files.length === 1 && only?.path === path && only.kind !== 'folder') {
    if (target === '-') await copy.print(path)
    else await copy.file(path, isFolder(target) ? join(target, basename(path)) : target)
  } else {
    if (target === '-') throw new UsageError(`${path} is a folder, which cannot be printed`)
    await copy.folder(path, files, isFolder(target) && path !== '' ? join(target, basename(path)) : target)
  }
  return EXIT_OK
}

class Copy {
  readonly #client: HeadroomClient
  readonly #id: string
  readonly #line = new StatusLine()

  constructor(client: HeadroomClient, id: string) {
    this.#client = client
    this.#id = id
  }

  /** The server names the paths: none may lead out of the target. */
  async folder(path: string, files: readonly WorkFile[], target: string): Promise<void> {
    const relative = (file: WorkFile): string => {
      const isBelow = path === '' || file.path.startsWith(`${path}/`)
      const rest = path === '' ? file.path : file.path.slice(path.length + 1)
      if (!isBelow || whyNoPath(rest) !== null)
        throw new CommandFailure(
          `the GPU server returned the path ${JSON.stringify(file.path)}, which is not below ` +
            `${path || 'the folder'}`,
        )
      return join(target, rest)
    }
    mkdirSync(target, { recursive: true })
    for (const file of files) {
      if (file.kind === 'folder') makeFolder(relative(file))
      else if (file.kind !== 'file') this.#line.print(`${file.path} is a ${file.kind} and was not copied`)
    }
    const regular = files.filter(({ kind }) => kind === 'file')
    let done = 0
    await inParallel(regular, FILES_AT_ONCE, async (file) => {
      await this.file(file.path, relative(file))
      this.#line.show(`${(done += 1)} of ${regular.length} files`)
    })
    this.#line.clear()
  }

  /** Written next to its place, and renamed once it is complete. */
  async file(path: string, target: string): Promise<void> {
    const draft = `${target}.${process.pid}.new`
    const handle = await open(draft, 'wx').catch((error: unknown) => {
      throw new CommandFailure(`cannot write ${draft}: ${(error as Error).message}`)
    })
    try {
      await this.#pieces(
        path,
        async (bytes, offset) => {
          for (let at = 0; at < bytes.length;)
            at += (await handle.write(bytes, at, bytes.length - at, offset + at)).bytesWritten
        },
        () => handle.truncate(0),
      )
      await handle.close()
      renameSync(draft, target)
    } catch (error) {
      await handle.close().catch(() => {})
      rmSync(draft, { force: true })
      throw error
    }
  }

  async print(path: string): Promise<void> {
    await this.#pieces(
      path,
      async (bytes) => {
        if (!process.stdout.write(bytes)) await drained(process.stdout)
      },
      null,
    )
  }

  /** @param restart begins again when the file was replaced; null: what was written cannot be taken back */
  async #pieces(
    path: string,
    write: (bytes: Buffer, offset: number) => Promise<void>,
    restart: (() => Promise<void>) | null,
  ): Promise<void> {
    for (let tries = 1; ; tries++) {
      if (await this.#readOnce(path, write)) return
      if (tries >= MAX_TRIES || restart === null)
        throw new CommandFailure(`${path} was replaced while it was read; try again`)
      await restart()
    }
  }

  /** Returns false if it was replaced meanwhile. */
  async #readOnce(path: string, write: (bytes: Buffer, offset: number) => Promise<void>): Promise<boolean> {
    const read = (offset: number): Promise<FilePiece> =>
      this.#client.tasks.readFile(this.#id, { path, offset })
    const first = await read(0)
    const step = first.next_offset
    await write(Buffer.from(first.data, 'base64'), 0)
    let size = first.bytes
    for (let offset = step; step > 0 && offset < size;) {
      const offsets = Array.from({ length: PIECES_AHEAD }, (_, place) => offset + place * step)
      for (const piece of await Promise.all(offsets.filter((at) => at < size).map(read))) {
        if (piece.inode !== first.inode) return false
        await write(Buffer.from(piece.data, 'base64'), piece.offset)
        // A file that grows is read to the end that it had last; one that shrank ends here.
        size = piece.bytes
        offset = piece.next_offset
        if (piece.next_offset === piece.offset) return true
        if (piece.next_offset - piece.offset < step) break
      }
    }
    return true
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}

/** A link in its place would lead the copy elsewhere. */
function makeFolder(path: string): void {
  const about = lstatSync(path, { throwIfNoEntry: false })
  if (about === undefined) mkdirSync(path)
  else if (!about.isDirectory()) throw new CommandFailure(`${path} exists and is not a folder`)
}
