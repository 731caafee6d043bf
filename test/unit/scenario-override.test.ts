import { describe, expect, it } from 'vitest'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { overrideFieldProblem, overrideValue } from '../../simulator/document/override.ts'
import type { Override } from '../../simulator/document/override.ts'
import type { Scenario } from '../../simulator/scenario/scenario.ts'

const TEXT = `scenario: small
version: 1
clock: { until: 1h }
fleet:
  - { count: 2, name: "a-{i}", gpus: 2, gpu: { model: A, vram_mib: 40960 } }
  - { name: b, gpu: { vram_mib: 24Gi } }
workload:
  - { generate: poisson, name: w, rate_per_hour: 10, vram_mib: 9000, duration: 1h }
`

function load(...overrides: Override[]): Scenario {
  return loadScenario({ text: TEXT, baseDir: '.', file: 'small.yaml' }, overrides).scenario
}

describe('an overridden field', () => {
  it('may be stated in the file, have a default, be nested in a default, or be in a list', () => {
    const scenario = load(
      { field: 'fleet.0.count', value: 3 },
      { field: 'fleet.1.gpu.swap', value: 'pinned-gen4' },
      { field: 'config.idle_swap_out_seconds', value: 60 },
      { field: 'config.queue_aging_seconds', value: null },
      { field: 'workload.0.vram_mib.lognormal.median', value: '12Gi' },
      { field: 'workload.0.vram_mib.lognormal.sigma', value: 0.25 },
      { field: 'clock.until', value: '2h' },
      { field: 'clock.drain', value: false },
    )
    expect(scenario.nodes.map(({ name }) => name)).toEqual(['a-0', 'a-1', 'a-2', 'b'])
    expect(scenario.nodes[3]?.gpu.swap).not.toEqual(load().nodes[3]?.gpu.swap)
    expect(scenario.config).toEqual({ idle_swap_out_seconds: 60, queue_aging_seconds: null })
    expect(scenario.workload[0]).toMatchObject({
      vram: { kind: 'lognormal', medianMib: 12_288, sigma: 0.25 },
      untilMs: 7_200_000,
    })
    expect(scenario.clock).toMatchObject({ untilMs: 7_200_000, drain: false })
  })

  it('leaves the file, its digest and the original scenario unchanged', () => {
    const source = { text: TEXT, baseDir: '.' }
    const changed = loadScenario(source, [{ field: 'fleet.0.count', value: 3 }])
    const plain = loadScenario(source)
    expect([changed.sha256, changed.text, changed.file]).toEqual([plain.sha256, plain.text, plain.file])
    expect(plain.scenario.nodes).toHaveLength(3)
  })

  it.each([
    ['fleet.0.cuont', 2, 'small.yaml with fleet.0.cuont=2:5:5: fleet[0].cuont: '],
    ['fleet.2.count', 2, 'has 2 entries, numbered from 0; there is no 2'],
    ['fleet.first.count', 2, 'there is no first'],
    ['fleet.0.count', -1, 'fleet[0].count: '],
    ['fleet.0.gpu.vram_mib', 'lots', 'fleet[0].gpu.vram_mib: '],
    ['config.idle_swap_out_seconds.deep', 1, 'config.idle_swap_out_seconds: '],
    ['seed', 3, 'seed is not a field that may be set: fields of config, fleet, workload, clock may be'],
    ['fleet', 3, 'fleet names no field'],
    ['fleet..count', 3, 'names no field'],
    [`fleet${'.0'.repeat(20)}`, 3, 'deeper than any field'],
    ['config.__proto__', 3, 'config.__proto__'],
  ] as const)('is refused by name if invalid: %s=%s', (field, value, words) => {
    expect(() => load({ field, value })).toThrow(
      expect.objectContaining({ name: 'ScenarioError', message: expect.stringContaining(words) }),
    )
  })

  it('is written like a value in YAML', () => {
    expect(
      ['300', '-2', '0.25', 'null', 'true', 'false', '10m', '40Gi', 'best_fit', '1e3', ''].map(overrideValue),
    ).toEqual([300, -2, 0.25, null, true, false, '10m', '40Gi', 'best_fit', '1e3', ''])
    expect(overrideFieldProblem('fleet.0.count')).toBeNull()
  })
})
