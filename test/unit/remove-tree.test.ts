import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { removeTree } from '../../gpu-server/guard/remove-tree.ts'
import { temporaryFolder } from '../support/headroom-command.ts'

it('A folder is removed with its content, and the targets of its links remain', async () => {
  const folder = temporaryFolder()
  const kept = join(folder, 'kept')
  mkdirSync(join(folder, 'gone/deep/deeper'), { recursive: true })
  mkdirSync(kept)
  writeFileSync(join(kept, 'file'), '')
  writeFileSync(join(folder, 'gone/deep/file'), '')
  symlinkSync(kept, join(folder, 'gone/link'))
  symlinkSync('/no/such/file', join(folder, 'gone/deep/dangling'))
  chmodSync(join(folder, 'gone/deep/file'), 0)
  await removeTree(join(folder, 'gone'))
  expect([existsSync(join(folder, 'gone')), existsSync(join(kept, 'file'))]).toEqual([false, true])
})

it('A link is removed without its target, and a missing path is not an error', async () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'target/inner'), { recursive: true })
  symlinkSync(join(folder, 'target'), join(folder, 'link'))
  await removeTree(join(folder, 'link'))
  await removeTree(join(folder, 'none/such'))
  expect([existsSync(join(folder, 'link')), existsSync(join(folder, 'target/inner'))]).toEqual([false, true])
})
