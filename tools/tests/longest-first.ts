import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that take half a minute or longer, the longest first. */
const LONGEST = [
  'integration/swap-hooks',
  'fuzz/sim-fuzz',
  'scenario/scenarios',
  'property/swap-engine',
  'contract/postgres-store',
  'integration/simulations',
  'integration/standalone',
  'integration/packed',
  'property/redecide-library',
  'fuzz/mutants',
  'property/swap-fairness',
  'property/refusals',
  'property/feasible',
  'integration/cli-channels',
  'integration/gpu-server',
  'integration/cli-run',
  'integration/store-mark',
  'integration/serve',
  'integration/cli-conformance',
  'integration/store-kind',
  'integration/determinism',
  'fuzz/regressions',
].map((name) => `/test/${name}.test.ts`)

/**
 * Within a project long files start first, so that no core is idle at the end. vitest knows how long a file
 * takes once it has run here; before that, as in continuous integration, it goes by the sizes of the files.
 */
export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const projects = [...new Set(sorted.map(({ project }) => project))]
    return projects.flatMap((project) =>
      sorted.filter((file) => file.project === project).toSorted((a, b) => placeOf(a) - placeOf(b)),
    )
  }
}

function placeOf({ moduleId }: TestSpecification): number {
  const place = LONGEST.findIndex((name) => moduleId.endsWith(name))
  return place === -1 ? LONGEST.length : place
}
