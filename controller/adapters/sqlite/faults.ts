/** Translates faults of SQLite and the file system into one line: the file, what is wrong, what to do. */
import { StoreFault } from '../../ports/store.ts'
import { oneLine } from '../sql/one-line.ts'
import { errorText } from '../../../protocol/error-text.ts'

/** @returns a StoreFault unchanged; any other fault translated, with the original as its cause */
export function faultOf(error: unknown, path: string): StoreFault {
  if (error instanceof StoreFault) return error
  return new StoreFault(oneLine(describe(codeOf(error), errorText(error), path)), { cause: error })
}

function describe(code: string, message: string, path: string): string {
  // The shared memory of the log could not grow: seen only on a full disk.
  if (code === 'SQLITE_IOERR_SHMSIZE') return describe('SQLITE_FULL', `${code}, ${message}`, path)
  const family = code.startsWith('SQLITE_') ? code.split('_', 2).join('_') : code
  const because = `(${code || 'unknown'}: ${message})`
  switch (family) {
    case 'SQLITE_BUSY':
    case 'SQLITE_LOCKED':
      return `${path} is locked by another program ${because}: stop that program, then start again`
    case 'SQLITE_FULL':
    case 'ENOSPC':
    case 'EDQUOT':
      return `the disk is full: ${path} could not be written ${because}: free some space, then start again`
    case 'SQLITE_IOERR':
    case 'EIO':
      return `the disk failed on ${path} ${because}: check the disk, then start again`
    case 'SQLITE_CORRUPT':
    case 'SQLITE_NOTADB':
      return damaged(path, because)
    case 'SQLITE_CANTOPEN':
    case 'SQLITE_READONLY':
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return (
        `${path} cannot be written ${because}: give user ID ${userId()} write permission, or use ` +
        'another data directory'
      )
    case 'EEXIST':
    case 'ENOTDIR':
    case 'ENOENT':
      return `the directory of ${path} cannot be created ${because}: use another data directory`
    default:
      return `the store ${path} failed ${because}`
  }
}

/** A file that SQLite cannot read. */
export function damaged(path: string, because: string): string {
  return oneLine(
    `${path} is damaged or not a database ${because}: restore a backup, or move the file and ${path}.id ` +
      'away to start with an empty store',
  )
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

function userId(): number | string {
  return process.geteuid?.() ?? 'of this process'
}
