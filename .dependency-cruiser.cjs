/**
 * Import rules between folders. Each part of this chain may import the parts before it:
 *   protocol → controller/structures → model → policy, metrics → state → engine → query →
 *   series, wire, recording, api → adapters → controller.ts → services → cli
 * Type-only imports count. References by `new URL('./worker.ts', import.meta.url)` are not detected.
 */

const FOLDERS = [
  'protocol',
  'controller',
  'gpu-server',
  'operator',
  'simulator',
  'services',
  'clients',
  'ui',
  'cli',
  'tools',
  'test',
]

const PROTOCOL = '^protocol/'
const STRUCTURES = '^controller/structures/'
const MODEL = '^controller/(structures|model)/'
const PORTS = '^controller/ports/'
const OPEN_PORTS = '^controller/ports/(clock|random|bus|store|device|twin|leadership)\\.ts$'
/** Metric definitions: a simulation reports with the controller's own. */
const METRICS = '^controller/metrics/'
/** The port for the devices of a GPU server. The simulator implements it with a model. */
const DEVICE = '^gpu-server/core/(device|attempt-start|storage)\\.ts$'
const POLICY = '^controller/policy/'
const PLACEMENT = '^controller/policy/placement/'
const SWAP = '^controller/policy/swap/'
/** The facts of the cluster; its indexes and sums, which are rebuilt from them; what keeps both. */
const FACTS = '^controller/state/(facts|new-facts|node-contact)\\.ts$'
const INDEX = '^controller/state/index/'
const STATE = '^controller/state/'
/** What changes the state, in layers: each may import those before it. */
const LIFECYCLE = '^controller/engine/apply/([a-z-]+\\.ts$|lifecycle/)'
const APPLY = '^controller/engine/apply/'
const NODE_INPUTS = '^controller/engine/inputs/nodes/'
const INPUTS = '^controller/engine/inputs/'
/** The state, what changes it, and what reads it. */
const ENGINE = '^controller/(state|engine|query)/'
/** Time series, sampled from the engine's views. */
const SERIES = '^controller/series/'
/** The schemas of the REST API. */
const SCHEMAS = '^controller/api/[a-z]+/[a-z-]*schema\\.ts$'
/** Recording of the controller's inputs. */
const RECORDING = '^controller/recording/'

/** The operator stack: its contract with users of Kubernetes; pure decisions; ports. */
const OPERATOR_CONTRACT = '^operator/contract/'
const OPERATOR_PORTS = '^operator/ports/'

const BELOW_STATE = [PROTOCOL, MODEL, PORTS, POLICY, METRICS]

/**
 * Simulator files that compose a whole simulated cluster. Only they may import the controller, its memory store
 * and the core of the GPU server.
 */
const COMPOSITION = '^simulator/(world|fleet)/'
/** Types of the controller's state, to read. */
const READING = '^controller/query/cluster-reading\\.ts$'
/** The folders of the simulator, in layers: each may import those before it. */
const SIMULATOR_LAYERS = [
  ['kernel'],
  ['document'],
  ['trace'],
  ['scenario'],
  ['results'],
  ['network'],
  ['fleet'],
  ['world'],
  ['snapshot', 'run'],
  ['check'],
  ['experiment'],
  ['twin', 'session', 'exercise'],
  ['report'],
]
/** Re-decides recordings; composes a simulated cluster too. */
const REDECISION = '^simulator/experiment/recording/'
const COMPOSED = [
  '^controller/controller\\.ts$',
  '^controller/adapters/memory-(leadership|store)\\.ts$',
  '^gpu-server/core/',
]

/**
 * Allows files that match `from` (a regular expression, without those that match `except`) to import each other
 * and the folders in `allowed`, and no other folder of this repository.
 */
const mayImport = (name, from, allowed, except) => ({
  name,
  comment: `${from} may import only ${allowed.join(', ') || 'itself'}`,
  severity: 'error',
  from: except === undefined ? { path: from } : { path: from, pathNot: except },
  to: { path: `^(${FOLDERS.join('|')})/`, pathNot: [from, ...allowed] },
})

/** Forbids imports of later layers, and of other folders of the same layer. */
const simulatorLayer = (folder, above) => ({
  name: `simulator-${folder}`,
  comment: `simulator/${folder} may not import ${above.join(', ')}`,
  severity: 'error',
  from: { path: `^simulator/${folder}/` },
  to: { path: `^simulator/(${above.join('|')})/` },
})

const mayUsePackages = (name, from, packages) => ({
  name,
  comment: `${from} is pure. Allowed packages: ${packages.join(', ') || 'none'}`,
  severity: 'error',
  from: { path: from },
  to: { path: 'node_modules/', pathNot: `node_modules/(${packages.join('|')})/` },
})

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    mayImport('protocol', PROTOCOL, []),
    mayImport('structures', STRUCTURES, [PROTOCOL]),
    mayImport('model', MODEL, [PROTOCOL]),
    mayImport('ports', PORTS, [PROTOCOL, MODEL]),
    mayImport('placement', PLACEMENT, [PROTOCOL, MODEL]),
    mayImport('swap', SWAP, [PROTOCOL, MODEL]),
    mayImport('metrics', METRICS, [PROTOCOL, MODEL]),
    mayImport('facts', FACTS, [PROTOCOL, MODEL, PORTS, SWAP, METRICS]),
    mayImport('index', INDEX, [PROTOCOL, MODEL, POLICY, METRICS, FACTS]),
    mayImport('state', STATE, BELOW_STATE),
    mayImport('lifecycle', LIFECYCLE, [...BELOW_STATE, STATE]),
    mayImport('apply', APPLY, [...BELOW_STATE, STATE]),
    mayImport('node-inputs', NODE_INPUTS, [...BELOW_STATE, STATE, APPLY]),
    mayImport('inputs', INPUTS, [...BELOW_STATE, STATE, APPLY]),
    mayImport('engine', '^controller/engine/', [...BELOW_STATE, STATE]),
    mayImport('query', ENGINE, BELOW_STATE),
    mayImport('series', SERIES, [PROTOCOL, MODEL, PORTS, POLICY, METRICS, ENGINE]),
    mayImport('recording', RECORDING, [PROTOCOL, MODEL, PORTS, ENGINE]),
    mayImport('wire', '^controller/wire/', [PROTOCOL, MODEL, PORTS, POLICY, METRICS, ENGINE]),
    mayImport('api', '^controller/api/', [PROTOCOL, MODEL, PORTS, POLICY, METRICS, ENGINE, SERIES]),
    mayImport('adapters', '^controller/adapters/', [
      PROTOCOL,
      MODEL,
      PORTS,
      POLICY,
      METRICS,
      ENGINE,
      '^controller/(wire|api)/',
    ]),
    mayImport('controller', '^controller/', [PROTOCOL]),
    mayImport('gpu-server-core', '^gpu-server/core/', [PROTOCOL, MODEL, OPEN_PORTS]),
    mayImport('gpu-server', '^gpu-server/', [PROTOCOL, MODEL, OPEN_PORTS]),
    mayImport('operator-contract', OPERATOR_CONTRACT, [PROTOCOL, MODEL]),
    mayImport('operator-ports', OPERATOR_PORTS, [PROTOCOL, MODEL, OPERATOR_CONTRACT]),
    mayImport('operator-admission', '^operator/admission/', [PROTOCOL, OPERATOR_CONTRACT, OPERATOR_PORTS]),
    mayImport('operator-plan', '^operator/plan/', [PROTOCOL, OPERATOR_CONTRACT]),
    mayImport('operator-reflector', '^operator/reflector/', [
      PROTOCOL,
      MODEL,
      OPEN_PORTS,
      OPERATOR_CONTRACT,
      OPERATOR_PORTS,
    ]),
    mayImport('operator-memory-api', '^operator/memory-api/', [PROTOCOL, OPERATOR_CONTRACT, OPERATOR_PORTS]),
    mayImport('operator', '^operator/', [PROTOCOL, MODEL, OPEN_PORTS, DEVICE]),
    mayImport('operator-placing', '^operator/placing/', [
      PROTOCOL,
      MODEL,
      OPEN_PORTS,
      DEVICE,
      OPERATOR_CONTRACT,
      OPERATOR_PORTS,
      '^operator/reflector/',
    ]),
    mayImport(
      'simulator',
      '^simulator/',
      [PROTOCOL, MODEL, OPEN_PORTS, METRICS, DEVICE, READING],
      `${COMPOSITION}|${REDECISION}`,
    ),
    mayImport('simulator-composition', COMPOSITION, [
      '^simulator/',
      PROTOCOL,
      MODEL,
      OPEN_PORTS,
      METRICS,
      ...COMPOSED,
    ]),
    mayImport('simulator-recording', REDECISION, [
      '^simulator/',
      PROTOCOL,
      MODEL,
      PORTS,
      RECORDING,
      ...COMPOSED,
    ]),
    ...SIMULATOR_LAYERS.flatMap((layer, index) =>
      layer.flatMap((folder) => {
        const above = SIMULATOR_LAYERS.slice(index)
          .flat()
          .filter((each) => each !== folder)
        return above.length === 0 ? [] : [simulatorLayer(folder, above)]
      }),
    ),
    mayImport('ui', '^ui/', [SCHEMAS]),
    mayImport('clients', '^clients/', [PROTOCOL, MODEL, SCHEMAS]),
    mayImport('services', '^services/', [
      PROTOCOL,
      '^controller/',
      '^gpu-server/',
      '^operator/',
      '^simulator/',
      '^clients/',
    ]),
    mayImport('cli', '^cli/', [
      PROTOCOL,
      '^controller/',
      '^gpu-server/',
      '^operator/',
      '^simulator/',
      '^services/',
      '^clients/',
    ]),
    {
      name: 'types-of-the-schema-only',
      comment:
        'The UI and the client import the types of the REST schema, and no code of the server except the ' +
        'frames of channels.',
      severity: 'error',
      from: { path: '^(ui|clients)/' },
      to: {
        path: '^(protocol|controller|gpu-server|operator|simulator|services|cli)/',
        pathNot: '^protocol/channel-frames\\.ts$',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'nothing-imports-test',
      comment: 'Production code does not import tests, test support or tools.',
      severity: 'error',
      from: { pathNot: '^(test|tools)/' },
      to: { path: '^(test|tools)/' },
    },
    {
      name: 'nothing-inside-imports-the-whole',
      comment: 'Only cli and the simulator compose controller.ts; nothing inside the controller imports it.',
      severity: 'error',
      from: { path: '^controller/' },
      to: { path: '^controller/controller\\.ts$' },
    },
    mayUsePackages(
      'pure-controller-packages',
      '^(protocol|controller/(structures|model|policy|metrics|state|engine|query|ports|recording|series|wire)|gpu-server/core|operator/(admission|contract|ports|plan|placing|memory-api|reflector))/',
      ['typebox'],
    ),
    mayUsePackages('simulator-packages', '^simulator/', [
      'typebox',
      'yaml',
      'csv-parse',
      'seedrandom',
      '@types/seedrandom',
    ]),
    {
      name: 'no-cycles',
      comment: 'Merge two files that need each other, or move what they share into a third file.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'resolvable',
      comment: 'Every import must resolve to a file.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'declared-packages',
      comment: 'Packages used in production are listed under dependencies in package.json.',
      severity: 'error',
      from: { path: '^(protocol|controller|gpu-server|operator|simulator|services|clients|cli)/' },
      to: {
        dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
        dependencyTypesNot: ['type-only', 'npm'],
        pathNot: '^node_modules/@types/',
      },
    },
    {
      name: 'names-say-something',
      comment: 'A file holds one idea and is named after what it exports.',
      severity: 'error',
      from: {},
      to: { path: '(^|/)(utils?|helpers?|common|managers?|misc)(/|\\.tsx?$)', pathNot: 'node_modules/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
}
