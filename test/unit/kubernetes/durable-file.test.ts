/** A file of the agent on a disk that is almost full, for which a limit on the size of files stands in. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { DurableFile } from '../../../gpu-server/pods/durable-file.ts'

const MODULE = new URL('../../../gpu-server/pods/durable-file.ts', import.meta.url).href
const WRITES = `
const { DurableFile } = await import('${MODULE}')
new DurableFile(process.argv[1], 'state.json').write('x'.repeat(8_192))`
const folder = mkdtempSync(join(tmpdir(), 'headroom-durable-'))
afterEach(() => rmSync(folder, { recursive: true }))

it('A content that does not fit leaves the one from before', () => {
  const file = new DurableFile(folder, 'state.json')
  file.write('before')
  const command = [process.execPath, '--input-type=module', '-e', WRITES, folder]
  const { status } = spawnSync('bash', ['-c', 'ulimit -c 0 -f 4; exec "$@"', 'bash', ...command])
  expect(status).not.toBe(0)
  expect(file.read(String)).toBe('before')
})
