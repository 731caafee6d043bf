import { expect, it } from 'vitest'
import { readInventory } from '../../services/gpu-server/inventory.ts'
import { temporaryFolder, write } from '../support/headroom-command.ts'

const folder = temporaryFolder()
const read = (content: string) => readInventory(write(folder, 'inventory.yaml', content))

it('GPUs are declared in YAML or JSON, with defaults', () => {
  const { gpus, hostSwapMib } = read(
    'gpus:\n  - { vram_mib: 24Gi }\n  - { vram_mib: 8192, model: small, swap: pinned-gen4 }\n',
  )
  expect(gpus.map(({ model, physicalMib }) => [model, physicalMib])).toEqual([
    ['declared', 24_576],
    ['small', 8_192],
  ])
  expect(hostSwapMib).toBe(2 * (24_576 + 8_192))
  expect(gpus[0]?.swapMs('out', 3_072)).toBe(1_500)
  expect(gpus[1]?.swapMs('in', 24_576)).toBe(1_300)
  expect(
    read(
      '{"gpus": [{"vram_mib": 100, "swap": {"out_mib_per_s": 100, "in_mib_per_s": 50}}], "host_swap_mib": 7}',
    ).hostSwapMib,
  ).toBe(7)
})

it.each([
  ['gpus: []', /inventory\.yaml:1:7: gpus/],
  ['gpus:\n  - { vram_mib: -1 }', /:2:17: gpus\[0\]\.vram_mib/],
  ['gpus:\n  - { vram_mib: 1, swap: fast }', /gpus\[0\]\.swap/],
  ['gpus:\n  - { vram_mib: 1, vrammib: 2 }', /vrammib/],
  ['- nothing', /:1:1/],
  ['gpus: [', /inventory\.yaml/],
])('%j is refused, with its position', (content, message) => {
  expect(() => read(content)).toThrow(message)
})

it('An error about a missing or oversized file names the file', () => {
  expect(() => readInventory(`${folder}/none.yaml`)).toThrow(/none\.yaml: cannot be read/)
  expect(() => read(`# ${'x'.repeat(70_000)}`)).toThrow(/more than 65536 bytes/)
})
