/** Runs the example of docs/client.md as another program would: the package's name resolves to the module. */
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { createClient } from '../../clients/typescript/client.ts'
import { askedApi } from '../support/asked.ts'
import { temporaryFolder, UNMEASURED } from '../support/headroom-command.ts'

const ROOT = join(import.meta.dirname, '../..')
const PAGE = readFileSync(join(ROOT, 'docs/client.md'), 'utf8')
const folder = temporaryFolder()

test('The example in docs/client.md runs and prints the documented output', async () => {
  const example = /```js\n(.*?)```/s.exec(PAGE)?.[1] ?? ''
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(ROOT, join(folder, 'node_modules/headroom'))
  writeFileSync(join(folder, 'example.mjs'), example)
  const { url } = await askedApi()
  // In a checkout the module is its source; in an installed package it is built.
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--conditions=headroom-source', join(folder, 'example.mjs')],
    {
      env: { ...process.env, ...UNMEASURED, VENDOR_CONTROLLER_URL: url },
    },
  )
  expect(stdout).toMatch(
    /^train is pending: It needs 16000000 MiB\.\ntrain\n(404|409) (not_found|conflict) .*\n$/,
  )
})

test('docs/client.md names every call of the client', () => {
  const table = PAGE.slice(PAGE.indexOf('## Calls'), PAGE.indexOf('## Errors'))
  const client = createClient({ url: 'http://127.0.0.1:1' })
  for (const [name, value] of Object.entries(client)) {
    if (name === 'url') continue
    if (typeof value === 'function') expect(table).toContain(`\`${name}()\``)
    else {
      const row = table.split('\n').find((line) => line.startsWith(`| \`${name}\``)) ?? ''
      expect(row.match(/`\w+`/g)?.slice(1), name).toEqual(Object.keys(value).map((call) => `\`${call}\``))
    }
  }
})
