// The view library: elements are made by DOM calls, texts are never read as HTML.
import { h, render, Fragment, createContext } from "preact";
import htm from "htm";
export { h, render, Fragment, createContext };
export { useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export const html = htm.bind(h);
