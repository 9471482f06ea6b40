/** What we use of the package, which brings no types. */
declare module "istanbul-lib-instrument" {
  export interface Instrumenter {
    instrumentSync(code: string, file: string): string;
  }
  export function createInstrumenter(options: {
    readonly esModules: boolean;
    readonly compact: boolean;
    readonly parserPlugins: readonly string[];
  }): Instrumenter;
}
