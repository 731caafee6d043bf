/** The work folders of this host as the launches of tasks need them. */
import { statfs } from 'node:fs/promises'
import type { Workdirs } from '../devices/host-preparations.ts'
import { prepareWorkdir } from './prepare-workdir.ts'
import { WorkHelper } from './work-helper.ts'
import { errorText } from '../../protocol/error-text.ts'

/** Stays free on the disk when uploaded folders are written. */
const MIN_FREE_BYTES = 512 * 1024 * 1024

/** @param program the guard program @param workFolder on the disk of all work folders */
export function workdirsOf(program: string, workFolder: string): Workdirs {
  return {
    async prepare(place, { sha256, read }, signal, onProgress) {
      const { bavail, bsize } = await statfs(workFolder)
      const helper = await WorkHelper.open(program, place.folder, place.user)
      try {
        const freeBytes = Math.max(0, bavail * bsize - MIN_FREE_BYTES)
        return await prepareWorkdir({ helper, sha256, read, freeBytes, signal, onProgress })
      } finally {
        helper.end()
      }
    },
  }
}

/** Returns why this host cannot serve files below this folder, or null: its kernel may be too old. */
export async function whyNoFiles(program: string, folder: string): Promise<string | null> {
  try {
    const helper = await WorkHelper.open(program, folder, null)
    try {
      const { error } = await helper.request({ op: 'list', a: 1, payload: Buffer.from('\0') })
      return error === null ? null : `the kernel of this host does not support openat2: ${error}`
    } finally {
      helper.end()
    }
  } catch (error) {
    return errorText(error)
  }
}
