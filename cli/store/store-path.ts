/** `headroom backup`, `restore` and `verify`. */
import { existsSync, lchownSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { openWorkdirs, type OpenWorkdir } from '../../controller/adapters/sqlite/open-workdirs.ts'
import { SCHEMA_VERSION } from '../../controller/adapters/sqlite/migrations.ts'
import type { LostRecords, RestorePreview } from '../../controller/adapters/sqlite/restore-preview.ts'
import { markText } from '../../controller/adapters/sql/store-mark.ts'
import type { BlobFiles } from '../../controller/ports/blob-files.ts'
import { StoreFault } from '../../controller/ports/store.ts'
import { verifyStore } from '../../controller/adapters/sqlite/verify.ts'
import { EXIT_FAILED, EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { createFolderFiles, FILES_FOLDER } from '../../services/files/folder-files.ts'
import { copyFiles, type CopiedFiles } from '../../services/files/copied-files.ts'
import { plural } from '../output/figures.ts'
import { visible } from '../output/terminal-text.ts'
import { openAccess, type StoreAccess, type StoreOptions } from './store-access.ts'

/** Tasks that a message names. */
const MAX_NAMED = 20

/**
 * @param hint what to name instead
 * @throws UsageError
 */
export function requireFile(path: string, hint = ''): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new UsageError(`file ${path} not found${hint}`)
  if (!found.isFile()) throw new UsageError(`${path} is not a file${hint}`)
}

const NAME = /^headroom-\d{4}-\d\d-\d\dT[\d-]+Z\.db$/

/** @throws UsageError, or StoreFault, each one line. */
export async function backup(
  target: string,
  options: StoreOptions & { readonly keep?: number },
): Promise<void> {
  const access = openAccess(options)
  const isFolder = target.endsWith('/') || (existsSync(target) && statSync(target).isDirectory())
  if (options.keep !== undefined && !isFolder) throw new UsageError('--keep requires a folder')
  const file = isFolder
    ? join(resolve(target), `headroom-${new Date().toISOString().replaceAll(/[:.]/g, '-')}.db`)
    : resolve(target)
  if (isFolder && !existsSync(target)) throw new UsageError(`folder ${target} not found`)
  for (const path of [file, filesNextTo(file)])
    if (existsSync(path)) throw new UsageError(`${path} already exists: choose another file`)
  await access.backUp(file)
  const to = createFolderFiles(filesNextTo(file))
  const whatIsLeft = () => {
    for (const path of [file, filesNextTo(file)]) rmSync(path, { recursive: true, force: true })
    return 'No backup was created'
  }
  const { complete, incomplete, copiedBytes } = await access.withFiles((files) =>
    copied(files, to, file, whatIsLeft),
  )
  const removed = options.keep === undefined ? 0 : removeAllBut(options.keep, resolve(target))
  process.stdout.write(
    `${file} (${Math.ceil(statSync(file).size / 1024)} ` +
      `KiB)${removed > 0 ? `, ${removed} older ${removed === 1 ? 'copy' : 'copies'} removed` : ''}\n`,
  )
  const filesKib = Math.ceil(copiedBytes / 1024)
  if (complete.length > 0)
    process.stdout.write(
      `${filesNextTo(file)} (${filesKib} KiB): uploaded folders of ${plural(complete.length, 'open task')}\n`,
    )
  process.stdout.write(missingText(incomplete, filesOf(access)))
}

/** Names begin with the time, so they sort by age. */
function removeAllBut(keep: number, folder: string): number {
  const copies = readdirSync(folder)
    .filter((name) => NAME.test(name))
    .sort((a, b) => (a < b ? 1 : -1))
  const old = copies.slice(keep)
  for (const name of old) {
    rmSync(join(folder, name))
    rmSync(filesNextTo(join(folder, name)), { recursive: true, force: true })
  }
  return old.length
}

export interface RestoreCommandOptions extends StoreOptions {
  readonly force?: boolean
  readonly dryRun?: boolean
}

/** @throws UsageError, or StoreFault, each one line. */
export async function restore(file: string, options: RestoreCommandOptions): Promise<void> {
  const [backup, access] = [resolve(file), openAccess(options)]
  requireFile(backup)
  if (backup === access.path) throw new UsageError(`${backup} is the store itself`)
  const from = createFolderFiles(filesNextTo(backup))
  if (options.dryRun === true) {
    process.stdout.write(previewText(backup, access.name, await access.preview(backup)))
    const { incomplete } = await access.withFiles((files) =>
      copyFiles(from, files, openWorkdirs(backup), true),
    )
    process.stdout.write(missingText(incomplete, filesOf(access)))
    return
  }
  let files: CopiedFiles<OpenWorkdir> = { complete: [], incomplete: [], copiedBytes: 0 }
  const whatIsLeft = () =>
    access.path === null
      ? 'The store is unchanged'
      : 'The store was restored: copy the files before you start the controller'
  const { verdict, aside } = await access.restore(backup, options.force ?? false, async (to) => {
    files = await copied(from, to, backup, whatIsLeft)
  })
  process.stdout.write(`${access.name} contains ${contentText(verdict)} from ${backup}\n`)
  if (aside !== null) process.stdout.write(`the previous store is now ${aside}\n`)
  if (access.path !== null) giveToOwnerOf(access.dataDir, filesOf(access))
  const { complete, incomplete } = files
  if (complete.length > 0)
    process.stdout.write(
      `${filesOf(access)} contains the uploaded folders of ${plural(complete.length, 'open task')}\n`,
    )
  process.stdout.write(missingText(incomplete, filesOf(access)))
  process.stdout.write(
    'the next controller starts in recovery: no task is placed, requeued or declared lost until every ' +
      'known node has reported\n',
  )
}

/** Returns `2 tasks, 1 node and 40 events`. */
export function contentText(content: {
  readonly tasks: number
  readonly nodes: number
  readonly events: number
}): string {
  const { tasks, nodes, events } = content
  return `${plural(tasks, 'task')}, ${plural(nodes, 'node')} and ${plural(events, 'event')}`
}

/** Where uploaded files of tasks are. */
function filesOf({ dataDir, path, name }: StoreAccess): string {
  return path === null ? name : join(dataDir, FILES_FOLDER)
}

function filesNextTo(backup: string): string {
  return `${backup}.files`
}

/**
 * Of the open tasks of a store. @param whatIsLeft called when a file cannot be copied
 * @throws StoreFault, one line
 */
async function copied(from: BlobFiles, to: BlobFiles, store: string, whatIsLeft: () => string) {
  try {
    return await copyFiles(from, to, openWorkdirs(store))
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error
    throw new StoreFault(
      `the uploaded files of tasks could not be copied to ${to.name} (${error.message}). ${whatIsLeft()}`,
      { cause: error },
    )
  }
}

/** Restored by root, they belong to the owner of the data folder. */
function giveToOwnerOf(dataDir: string, folder: string): void {
  if (process.geteuid?.() !== 0 || !existsSync(folder)) return
  const { uid, gid } = statSync(dataDir)
  for (const name of ['', ...readdirSync(folder, { recursive: true, encoding: 'utf8' })])
    lchownSync(join(folder, name), uid, gid)
}

function missingText(incomplete: readonly OpenWorkdir[], folder: string): string {
  if (incomplete.length === 0) return ''
  const named = incomplete.slice(0, MAX_NAMED).map(({ taskId, name }) => `  ${taskId} ${visible(name)}`)
  const more = incomplete.length > MAX_NAMED ? [`  … and ${incomplete.length - MAX_NAMED} more`] : []
  const lines = [
    `Files are missing from the uploaded folders (${folder}) of ${plural(incomplete.length, 'open task')}. ` +
      'Without these files, a task cannot start again: cancel it and submit it again.',
    ...named,
    ...more,
  ]
  return `${lines.join('\n')}\n`
}

export function previewText(backup: string, path: string, preview: RestorePreview): string {
  const lines = [
    `backup  ${backup}: epoch ${preview.backup.epoch}, ${lastEvent(preview.backup)}`,
    storeLine(path, preview),
    preview.mark === null ? 'mark    none' : `mark    ${markText(preview.mark)}`,
    ...lossLines(preview),
    'epoch   the restored store starts in recovery, with an epoch higher than every known epoch',
    'dry run: nothing was changed',
  ]
  return `${lines.join('\n')}\n`
}

function storeLine(path: string, { store, unreadable }: RestorePreview): string {
  if (unreadable !== null) return `store   cannot be read: ${unreadable}`
  if (store === null) return `store   none at ${path}`
  return `store   ${path}: epoch ${store.epoch}, ${lastEvent(store)}`
}

function lastEvent({ eventSeq, lastEventAt }: RestorePreview['backup']): string {
  return lastEventAt === null
    ? `last event ${eventSeq}`
    : `last event ${eventSeq} at ${new Date(lastEventAt).toISOString()}`
}

function lossLines({ backup, store, mark, events, isOtherHistory, lost }: RestorePreview): readonly string[] {
  if (store === null && mark === null)
    return ['lost    unknown: there is no store and no mark to compare with']
  const to = Math.max(store?.epoch ?? 0, mark?.epoch ?? 0)
  const lines = [
    events === 0
      ? 'lost    0 events'
      : `lost    ${plural(events, 'event')}, ${backup.eventSeq + 1} to ${backup.eventSeq + events}`,
    to > backup.epoch ? `lost    changes of epochs ${backup.epoch} to ${to}` : `lost    0 epochs`,
  ]
  if (isOtherHistory)
    lines.unshift(
      'lost    all changes that exist only in the store: store and backup have different ' + 'histories',
    )
  return [...lines, ...(lost === null ? [] : recordLines(lost))]
}

function recordLines({ tasks, named, reopened, configRevisions }: LostRecords): readonly string[] {
  const more = tasks > named.length ? [`          … and ${tasks - named.length} more`] : []
  return [
    `lost    ${plural(tasks, 'task')} submitted since the backup`,
    ...named.map(({ id, name, state }) => `          ${id} ${state} ${visible(name)}`),
    ...more,
    `lost    the results of ${plural(reopened, 'task')} that ended since the backup`,
    `lost    ${plural(configRevisions, 'configuration revision')}`,
  ]
}

/** @throws UsageError, or StoreFault, each one line. */
export async function verify(file: string | undefined, options: StoreOptions): Promise<number> {
  const access = openAccess(options)
  const path = file === undefined ? access.path : resolve(file)
  const name = path ?? access.name
  if (path !== null) requireFile(path, ': specify the file, or its folder with --data-dir')
  const { schema, epoch, tasks, nodes, events, problems } = await (path === null
    ? access.verify()
    : verifyStore(path))
  for (const problem of problems) process.stdout.write(`${problem}\n`)
  if (problems.length > 0) {
    process.stderr.write(`${name}: damaged\n`)
    return EXIT_FAILED
  }
  const age = schema === SCHEMA_VERSION ? '' : ` (this program migrates it to ${SCHEMA_VERSION})`
  process.stdout.write(
    `${name}: intact; schema ${schema}${age}, epoch ${epoch}, ${contentText({ tasks, nodes, events })}\n`,
  )
  return EXIT_OK
}
