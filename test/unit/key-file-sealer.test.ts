/** What is sealed opens with the same key and context only. */
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'
import { KeyFileFault, openKeyFile } from '../../controller/adapters/key-file-sealer.ts'
import { temporaryFolder } from '../support/headroom-command.ts'

const folder = temporaryFolder()
const path = join(folder, 'secrets.key')

describe('a key file', () => {
  beforeEach(() => rmSync(path, { force: true }))

  it('is created with the first value, for its owner only, and opens the value after a restart', () => {
    const sealer = openKeyFile(path)
    expect(sealer.open('anything', 'a')).toBeNull()
    expect(existsSync(path)).toBe(false)
    const sealed = sealer.seal('pässword', 'a')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(sealed).not.toContain('pässword')
    expect(sealer.seal('pässword', 'a')).not.toBe(sealed)
    expect(openKeyFile(path).open(sealed, 'a')).toBe('pässword')
  })

  it('opens nothing of another context or key, and nothing that was changed', () => {
    const sealed = openKeyFile(path).seal('value', 'owner a')
    const key = readFileSync(path)
    expect(openKeyFile(path).open(sealed, 'owner b')).toBeNull()
    const bytes = Buffer.from(sealed, 'base64')
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ 1
      expect(openKeyFile(path).open(changed.toString('base64'), 'owner a')).toBeNull()
    }
    expect(openKeyFile(path).open(bytes.subarray(0, 20).toString('base64'), 'owner a')).toBeNull()
    rmSync(path)
    openKeyFile(path).seal('other', 'x')
    expect(openKeyFile(path).open(sealed, 'owner a')).toBeNull()
    writeFileSync(path, key, { mode: 0o600 })
    expect(openKeyFile(path).open(sealed, 'owner a')).toBe('value')
  })

  it('is refused if others may read it, or if it holds no key', () => {
    openKeyFile(path).seal('value', 'a')
    chmodSync(path, 0o640)
    expect(() => openKeyFile(path)).toThrow(
      new KeyFileFault(`${path}: other users can read the key of the secrets; run: chmod 600 ${path}`),
    )
    writeFileSync(path, 'short\n')
    chmodSync(path, 0o600)
    expect(() => openKeyFile(path)).toThrow(/does not contain a key of 32 bytes/)
  })
})
