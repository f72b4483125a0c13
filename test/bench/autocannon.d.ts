/** The part of autocannon that the benches use; the package ships no types. */
declare module 'autocannon' {
  interface Load {
    readonly url: string;
    readonly method: 'POST';
    readonly headers: Record<string, string>;
    readonly body: string;
    readonly connections: number;
    /** Seconds. */
    readonly duration: number;
  }
  interface Outcome {
    readonly requests: { readonly average: number };
    readonly non2xx: number;
    readonly errors: number;
  }
  export default function autocannon(load: Load): Promise<Outcome>;
}
